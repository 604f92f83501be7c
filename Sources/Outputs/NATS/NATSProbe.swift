public import EventLoops
public import Logs
public import Model

/// Connects to a NATS destination as sending would, shows who we are, and closes again. Publishes nothing.
public enum NATSProbe {
    /// One attempt. Blocks, for the options' `requestTimeout` at most.
    ///
    /// - Returns: what failed, in words that say what to do; nil when a server takes us.
    /// - Throws: `OutputError` for settings without meaning, and files that cannot be read.
    public static func attempt(_ options: NATSOptions, log: Log) throws(OutputError) -> Failure? {
        try ConnectionProbe.run { loop throws(OutputError) in
            let output = try NATSOutput("check", options, on: loop, log: log)
            return { await output.connect() }
        } ?? nil
    }
}
