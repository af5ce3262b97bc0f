"""Text for people: words, spans and paragraphs. It knows neither Textual nor a terminal."""
