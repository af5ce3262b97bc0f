"""The line with which a supervisor that stops on purpose leaves its agents' relays."""

METHOD = "notifications/whisper-tui/goodbye"

GOODBYE = b'{"jsonrpc":"2.0","method":"%s"}\n' % METHOD.encode()
