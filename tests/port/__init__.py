"""One suite for the port: the supervisor in process, and the same through its socket."""
