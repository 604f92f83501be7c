internal import Model
package import Schemas

/// A document's schema for the events of one name, compiled.
package struct DocumentSchema: Sendable, Equatable {
    /// Name of the events.
    package let name: String
    /// The schema as it was published, for comparing documents.
    private let written: JSONValue
    /// The compiled schema.
    package let compiled: EventSchema

    /// Reads a schema.
    ///
    /// - Parameters:
    ///   - container: id and version of the document.
    ///   - budget: what the document's schemas may still use.
    /// - Throws: `form` with the path of what cannot be used; `limit` for a long name.
    init(
        _ name: String, reading node: DocumentNode, of container: (id: String, version: Int),
        within budget: inout SchemaBudget
    ) throws(ContainerError) {
        // The name appears in logs, metrics and tables.
        guard !name.isEmpty, name.utf8.count <= DocumentLimits.eventNameBytes,
            !name.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) })
        else {
            throw node.error(
                "an event's name has 1 to \(DocumentLimits.eventNameBytes) bytes, no control characters")
        }
        self.name = name
        written = node.value
        do throws(SchemaError) {
            compiled = try EventSchema(name: name, node.value, of: container, within: &budget)
        } catch {
            throw node.descendant(error.steps).error(error.reason)
        }
    }

    package static func == (left: DocumentSchema, right: DocumentSchema) -> Bool {
        left.name == right.name && left.written == right.written
    }
}
