"""The supervisor's API over a local socket: server, clients, and starting a supervisor."""
