"""Resolution: the programs, files and values that a command's words mean on this machine, without running it."""
