/// `[destination.kafka]`: the topic, the brokers, and the records.
public struct KafkaSettings: Sendable, Equatable {
    package var brokers: [String] = []
    package var topic: Template = ""
    /// The member that is a record's key; `none` for records without.
    public var key = "session_id"
    package var tls = true
    package var mechanism = KafkaMechanism.scramSHA512
    package var options: [String: String] = [:]

    package init() {}

    package var addresses: [EndpointURL] { brokers.compactMap { EndpointURL("kafka://\($0)") } }
}
