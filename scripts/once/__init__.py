"""The parts of scripts/exactly-once: the agent, what lies between it and the server, and a module for each kind of server.

A server's class has `destination(port)`, the agent's configuration, `harm(proxy)`, `lines()`, what a reader finds, and `stop()`.
"""
