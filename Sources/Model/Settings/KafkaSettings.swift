/// `[destination.kafka]`: the brokers, the topic, and the records.
public struct KafkaSettings: Sendable, Equatable {
    /// Brokers to begin with, as `host:port`; they announce the others.
    package var brokers: [String] = []
    package var topic: Template = ""
    /// Path of the member that becomes a record's key; `none` for records without a key. Events with
    /// one key stay in order.
    public var key = "session_id"
    package var tls = true
    package var mechanism = KafkaMechanism.scramSHA512
    /// More properties of librdkafka.
    package var options: [String: String] = [:]

    package init() {}

    /// The brokers as URLs.
    package var addresses: [EndpointURL] { brokers.compactMap { EndpointURL("kafka://\($0)") } }
}
