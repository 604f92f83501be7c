public import Model

/// Requests that concern the containers.
public protocol ContainerControl: Sendable {
    /// The state of all containers, in configuration order.
    func list() async -> [JSONValue]

    /// The state of one, with its values.
    func show(_ id: String) async throws(ControlRefusal) -> JSONValue

    /// A value by its key, as a type (`string`, `integer`, `double`, `boolean`), of one container or of the last one that
    /// has it.
    ///
    /// - Returns: the value, or the type's standard one, and whether it is missing.
    func value(
        of key: String, type: String, in id: String?
    ) async throws(ControlRefusal) -> (value: JSONValue, isMissing: Bool)

    /// Fetches one container, or all that have an address; returns how each fetch ended.
    func refresh(_ id: String?) async throws(ControlRefusal) -> [JSONValue]

    /// The exact bytes of the document in force.
    func document(_ id: String) async throws(ControlRefusal) -> [UInt8]

    /// Lets a draft rule for a time.
    ///
    /// - Parameter id: the container it must be for; nil for any that this agent has.
    /// - Returns: id and version.
    func preview(_ id: String?, _ document: [UInt8], for time: Duration) async throws(ControlRefusal) -> JSONValue

    /// Fetches a signed draft and lets it rule for a time.
    ///
    /// - Parameters:
    ///   - id: the container it must be for; nil where this agent has but one.
    ///   - link: where it is; it must be signed by a key of the container.
    /// - Returns: id and version.
    func preview(_ id: String?, link: String, for time: Duration) async throws(ControlRefusal) -> JSONValue

    /// Ends the preview of one container, or of all; returns those that were previewed.
    func endPreview(_ id: String?) async throws(ControlRefusal) -> [String]

    /// What happens to containers from now on.
    func watch() -> AsyncStream<JSONValue>
}
