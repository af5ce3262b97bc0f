"""What fills the terminal: the cockpit and the dialogs over it."""
