public import Model

/// A test case of a document: an event and the expected result. `container test` runs it.
public struct TestCase: Sendable, Equatable {
    /// The behaviour that the case shows; unique in its document.
    public let name: String
    /// The app that wrote the event. Default `default`.
    public let app: String
    /// Name of the machine; nil for that of the run.
    public let host: String?
    /// Path of the file with the event's line, as the macro `file` gives it; empty for none.
    public let file: String
    /// Objects that were pushed into the app's data layer before, in order.
    public let dataLayer: [JSONValue]
    /// Results of functions by name; other functions give null.
    public private(set) var functions: [String: JSONValue] = [:]
    /// The event as an app would write it; nil for a case about values only.
    public let event: JSONValue?
    /// The expected result.
    public let expected: Expectation

    /// What a case expects; nil or empty parts are not checked.
    public struct Expectation: Sendable, Equatable {
        /// The tags that fire, in order.
        public var tags: [String]?
        /// Members that the event must have afterwards, with their values. Objects in the event may have
        /// further members.
        public var event: JSONValue?
        /// Members that the event must not have afterwards.
        public var absent: [MemberPath] = []
        /// The tag or rule that discards the event.
        package var discardedBy: String?
        /// Whether the event is kept.
        package var isKept: Bool?
        /// The priority afterwards.
        package var priority: Priority?
        /// The destinations, if tags choose them.
        public var destinations: [String]?
        /// Location that the event's schema does not allow, as a JSON Pointer; empty for the event itself.
        package var schemaFailure: String?
        /// Values as `container get` shows them.
        public var values: [JSONValue.Member] = []
    }
}

extension TestCase {
    /// Reads a test case.
    init(reading node: DocumentNode) throws(ContainerError) {
        let members = try node.members(
            known: [
                "name", "description", "app", "host", "file", "data_layer", "functions", "event", "expect",
            ])
        name = try members.required("name").name()
        app = try members.optional("app")?.name() ?? "default"
        host = try members.optional("host")?.name()
        file = try members.optional("file")?.text(limit: DocumentLimits.whenBytes) ?? ""
        dataLayer =
            try members.optional("data_layer")?.elements(limit: DocumentLimits.list)
            .map { node throws(ContainerError) in try node.object() } ?? []
        for (name, node) in try members.optional("functions")?.members(limit: DocumentLimits.list).all ?? [] {
            functions[name] = try node.constant()
        }
        event = try members.optional("event")?.object()
        expected = try Expectation(reading: try members.required("expect"))
        guard event != nil || expected == Expectation(values: expected.values) else {
            throw node.error("needs an \"event\", or expects nothing but values")
        }
    }
}

extension TestCase.Expectation {
    /// Reads the expected result.
    init(reading node: DocumentNode) throws(ContainerError) {
        let members = try node.members(
            known: [
                "tags", "event", "absent", "discarded_by", "kept", "priority", "destinations",
                "schema_failure", "values",
            ])
        tags = try members.optional("tags")?.names()
        event = try members.optional("event")?.object()
        absent = try members.optional("absent")?.memberPaths() ?? []
        discardedBy = try members.optional("discarded_by")?.name()
        isKept = try members.optional("kept")?.bool()
        priority = try members.optional("priority")?.priority()
        destinations = try members.optional("destinations")?.names()
        for (name, node) in try members.optional("values")?.members(limit: DocumentLimits.values).all ?? [] {
            values.append(JSONValue.Member(name, try node.constant()))
        }
        schemaFailure = try members.optional("schema_failure")?.text(limit: DocumentLimits.whenBytes)
        guard schemaFailure == nil || self == Self(schemaFailure: schemaFailure, values: values) else {
            throw node.error("an event with a schema_failure goes no further, so nothing else happens to it")
        }
    }
}
