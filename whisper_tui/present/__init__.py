"""Text for people: words, spans and paragraphs. It depends on neither Textual nor a terminal."""
