"""The page in which a browser shows the cockpit, and what it is allowed to do."""

PAGE = """\
<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>whisper_tui</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="static/css/xterm.css">
    <style>
      @font-face {
        font-family: "Roboto Mono";
        src: url("static/fonts/RobotoMono-VariableFont_wght.ttf");
      }
      html, body { height: 100%; margin: 0; overflow: hidden; background: #10151c; }
      .textual-terminal { height: 100vh; }
      .xterm .xterm-viewport { overflow: hidden !important; background: #10151c !important; }
      .note { display: none; position: absolute; inset: 0; z-index: 10; align-items: center; justify-content: center;
        color: #e6edf3; background: #10151ce6; font: 18px "Roboto Mono", monospace; }
      .note a { color: #79c0ff; }
      body:not(.-first-byte) .opening, body.-closed .closed { display: flex; }
      body.-closed .opening { display: none; }
    </style>
    <script src="static/js/textual.js" defer></script>
  </head>
  <body>
    <div class="note opening"><p>The cockpit opens …</p></div>
    <div class="note closed"><p>The cockpit is closed; everything goes on. <a href="">Open it again</a></p></div>
    <div id="terminal" class="textual-terminal" data-session-websocket-url="@SOCKET@" data-font-size="16"></div>
  </body>
</html>
"""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self'; img-src 'self' data:; connect-src 'self' @ORIGIN@; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer: nothing comes from elsewhere, nothing is framed, and no address is passed on."""


def page(host: str, token: str) -> str:
    """The page, as it is shown under a host and port."""
    return PAGE.replace("@SOCKET@", f"ws://{host}/{token}/ws")


def headers(host: str) -> dict[str, str]:
    """The headers of an answer under a host and port."""
    return {name: value.replace("@ORIGIN@", f"ws://{host}") for name, value in HEADERS.items()}
