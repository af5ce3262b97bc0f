"""One suite for the API: the supervisor in process, and through its socket."""
