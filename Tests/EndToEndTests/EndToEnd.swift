//  EndToEndTests: the built binary against real input: nginx, the package list of this machine, kill -9, hostile lines.
//  Promise: what the product says to an operator holds for the program that is installed, not only for its modules.
//  The tests know the command line, the spool, the ports and nothing else of the agent.

import Testing

/// All suites of this target, one after the other: they start servers and measure what a busy machine would blur.
@Suite("End to end", .serialized)
enum EndToEnd {}
