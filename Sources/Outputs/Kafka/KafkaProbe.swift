public import EventLoops
public import Logs
public import Model

/// Connects to a Kafka destination as sending would, asks for the topic, and ends. Writes nothing.
public enum KafkaProbe {
    /// One attempt. Blocks, for the options' `connectTimeout` at most.
    ///
    /// - Returns: what failed, in words that say what to do; nil when the brokers take us and have the topic.
    /// - Throws: `OutputError` for settings without meaning, files that cannot be read, and a missing library.
    public static func attempt(_ options: KafkaOptions, log: Log) throws(OutputError) -> Failure? {
        try ConnectionProbe.run { loop throws(OutputError) in
            let output = try KafkaOutput("check", options, on: loop, log: log)
            return { await output.connect() }
        } ?? nil
    }
}
