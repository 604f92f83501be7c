//  Schemas: checks events against the JSON Schema for their name (a subset of draft 2020-12).
//
//  Promises:
//  - An accepted schema is checked in full. One with a keyword outside the subset is refused with the place
//    of the keyword: a schema that is checked in part looks like one that is kept.
//  - The work for one event is bounded by its length, whatever the schema refers to (`SchemaWalk.steps`);
//    expressions match in linear time (RE2).
//  - A failure names members of the schema and a position in the line, and never shows content of the event.
//
//  Parts:
//  - `SchemaSet` (this file): the schemas in force, in layers; `SchemaTable` finds that of an event's name.
//  - `SchemaFiles`: reads the schemas of a directory.
//  - `EventSchema`: one compiled schema; containers' documents have their schemas as these, too.
//  - `SchemaCompiler`: makes `SchemaNode`s of a document, and refuses what is not supported.
//  - `SchemaWalk`: compares the bytes of an event with the nodes, without parsing it into values.
//
//  Rules:
//  - Everything is immutable after it was made, and may be used from any thread. A reload makes a new set.
//  - Schemas are the operator's, but a mistake in them must not stop the agent; hence 1,000 schemas of 256
//    KiB, 4,096 nodes and 64 expressions each (`SchemaBudget`). Events are hostile: an app may write any
//    JSON.
//  - The caller has scanned the event before: it is valid JSON and nested at most 64 deep. `SchemaWalk`
//    relies on both.
//  - It knows nothing of the intake, the quarantine and the settings.
//
//  Begin with `SchemaSet.table(of:)` and `EventSchema.failure(in:)`, then `SchemaWalk.value`.

internal import Glibc
package import Model

/// Schemas of one origin: the directory, or a container's document.
package struct SchemaLayer: Sendable {
    package let schemas: [EventSchema]
    /// Apps to whose events the layer applies; empty for all.
    let apps: Set<String>

    package init(_ schemas: [EventSchema], apps: Set<String> = []) {
        self.schemas = schemas
        self.apps = apps
    }
}

/// The schemas in force, by the names of events.
///
/// An event is compared with one schema: that of the first layer which has one for its name and app. Within a
/// layer an app's schema replaces the one for all apps.
///
/// Unchecked, because nothing changes after `init`, and RE2 allows matching from any thread at any time.
public final class SchemaSet: @unchecked Sendable, Equatable {
    /// All schemas in a fixed order; the intake counts results by the index here.
    package let schemas: [EventSchema]
    /// The layers, the one that wins first.
    private let layers: [SchemaLayer]
    /// Schemas for the events of all apps.
    private let ofAll: SchemaTable
    /// For each app with schemas of its own: those, and the ones for all apps that they do not replace.
    private let ofApp: [String: SchemaTable]

    /// A set of one layer. Of two schemas with the same app and name, the later one counts.
    package convenience init(_ schemas: [EventSchema] = []) { self.init(layers: [SchemaLayer(schemas)]) }

    /// A set of layers, the one that wins first.
    private init(layers: [SchemaLayer]) {
        self.layers = layers
        schemas = layers.flatMap(\.schemas)
        let apps = layers.reduce(into: Set<String>()) { apps, layer in
            apps.formUnion(layer.apps)
            apps.formUnion(layer.schemas.compactMap(\.app))
        }
        ofAll = SchemaTable(SchemaSet.indices(in: layers, of: nil))
        ofApp = Dictionary(
            uniqueKeysWithValues: apps.map { ($0, SchemaTable(SchemaSet.indices(in: layers, of: $0))) })
    }

    /// This set, and further layers for events that none of its schemas concerns.
    package func followed(by layers: [SchemaLayer]) -> SchemaSet {
        layers.isEmpty ? self : SchemaSet(layers: self.layers + layers)
    }

    /// What has the schema that counts instead of an unused one, for messages.
    package static let winner = "schemas.directory or an earlier container"

    /// Titles of schemas with which no event is compared, because another layer has one for its name.
    package var unused: [String] {
        var used = ofAll.indices
        for table in ofApp.values { used.formUnion(table.indices) }
        return schemas.indices.filter { !used.contains($0) }.map { schemas[$0].title }
    }

    /// Index of the schema that counts for each name.
    ///
    /// - Parameter app: nil for the apps that no layer and no schema names.
    private static func indices(in layers: [SchemaLayer], of app: String?) -> [String: Int] {
        var indices: [String: Int] = [:]
        var first = 0
        for layer in layers {
            defer { first += layer.schemas.count }
            guard layer.apps.isEmpty || app.map({ layer.apps.contains($0) }) == true else { continue }
            var own: [String: Int] = [:]
            // Those for all apps first, so that the app's own replace them.
            for wanted in app == nil ? [nil] : [nil, app] {
                for (index, schema) in layer.schemas.enumerated() where schema.app == wanted {
                    own[schema.name] = first + index
                }
            }
            indices.merge(own) { stronger, _ in stronger }
        }
        return indices
    }

    /// The schemas for an app's events. Looked up once for each block of lines, since all its lines are of
    /// one app.
    package func table(of app: String) -> SchemaTable { ofApp[app] ?? ofAll }

    /// Whether both are the same object. Sets with equal content are different: counters belong to a set.
    public static func == (left: SchemaSet, right: SchemaSet) -> Bool { left === right }
}

/// Finds the schema of an event's name, for one app.
package struct SchemaTable: Sendable {
    /// Names and indexes of schemas, sorted by length and then by bytes, for a binary search. Comparing
    /// lengths first avoids most comparisons of bytes.
    private let rows: [(name: [UInt8], index: Int)]

    fileprivate init(_ indices: [String: Int]) {
        rows = indices.map { (Array($0.key.utf8), $0.value) }.sorted { left, right in
            left.name.count == right.name.count
                ? left.name.lexicographicallyPrecedes(right.name) : left.name.count < right.name.count
        }
    }

    /// Indexes of all schemas in the table.
    fileprivate var indices: Set<Int> { Set(rows.map(\.index)) }

    /// Whether no schema concerns the app; the caller then skips all checks.
    package var isEmpty: Bool { rows.isEmpty }

    /// Index of the schema in its set; nil for a name without a schema.
    ///
    /// - Parameter name: the bytes of the event's name. No string is made of them: this is done for every
    ///   event.
    package func index(of name: UnsafeBufferPointer<UInt8>) -> Int? {
        guard let text = name.baseAddress else { return nil }
        var low = 0
        var high = rows.count
        while low < high {
            let middle = (low + high) / 2
            let other = rows[middle].name
            let order =
                name.count == other.count ? Int(memcmp(text, other, other.count)) : name.count - other.count
            if order == 0 { return rows[middle].index }
            if order < 0 {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return nil
    }
}

/// The compiled schema for the events of one name.
public final class EventSchema: Sendable {
    /// App whose events it concerns; nil for all apps.
    package let app: String?
    /// Name of the events.
    package let name: String
    /// The schema's member `version`, for counters; without one the version of the container's document, or
    /// empty for a file.
    package let version: String
    /// Name for messages: the event's, and the container's document that the schema is in.
    package let title: String
    private let document: SchemaDocument

    /// Compiles the content of a file.
    ///
    /// - Throws: `SchemaError` if it is not JSON, not a schema, or uses a keyword that is not supported.
    package init(app: String? = nil, name: String, _ bytes: [UInt8]) throws(SchemaError) {
        self.app = app
        self.name = name
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch { throw SchemaError("\(error)") }
        version = EventSchema.version(of: value) ?? ""
        title = name
        var budget = SchemaBudget()
        document = try SchemaCompiler.compile(value, within: &budget)
    }

    /// Compiles a schema of a container's document. `$ref` leads into this schema, not into the document.
    ///
    /// - Parameters:
    ///   - container: id and version of the document.
    ///   - budget: what the document's schemas may still use.
    /// - Throws: `SchemaError` as for a file.
    package init(
        name: String, _ value: JSONValue, of container: (id: String, version: Int),
        within budget: inout SchemaBudget
    ) throws(SchemaError) {
        app = nil
        self.name = name
        version = EventSchema.version(of: value) ?? "\(container.version)"
        title = "\(name) (\(container.id) version \(container.version))"
        document = try SchemaCompiler.compile(value, within: &budget)
    }

    /// The member `version`: a text or a whole number; nil without one.
    private static func version(of value: JSONValue) -> String? {
        value["version"].flatMap { $0.string ?? $0.integer.map { "\($0)" } }
    }

    /// What is wrong with an event; nil if the schema allows it. Ends at the first failure.
    ///
    /// - Parameter line: begins with the event's JSON object, which was scanned before; what follows it is
    ///   ignored.
    package func failure(in line: UnsafeBufferPointer<UInt8>) -> SchemaFailure? {
        guard let base = line.baseAddress else { return nil }
        var walk = SchemaWalk(document, base, line.count)
        return walk.check()
    }
}

/// Why a document cannot be used.
public struct SchemaError: Error, Sendable, Equatable {
    /// JSON Pointer (RFC 6901) to the place in the schema; empty for the schema as a whole.
    private let pointer: String
    /// What is wrong there, and what to do.
    package let reason: String
    /// Text for a person: where, what, and what to do.
    public let message: String

    package init(_ message: String) {
        pointer = ""
        reason = message
        self.message = message
    }

    /// An error at a place of the document.
    ///
    /// - Parameter pointer: JSON Pointer (RFC 6901) to the place; empty for the whole document.
    package init(at pointer: String, _ message: String) {
        self.pointer = pointer
        reason = message
        self.message = "\(pointer.isEmpty ? "the schema" : pointer): \(message)"
    }

    /// The names and positions on the way to the place, outermost first.
    package var steps: [String] {
        pointer.split(separator: "/").map { SchemaCompiler.name(of: $0) }
    }
}

/// Why a schema does not allow an event. Never contains content of the event, because it goes to logs.
public struct SchemaFailure: Sendable, Equatable {
    /// JSON Pointer to the value, made of names from the schema, positions in lists, and `(additional)` for a
    /// member that the schema does not name; empty for the event itself.
    package let path: String
    /// The keyword, and the condition that it sets.
    package let reason: String
    /// Beginning of the value, in bytes from the beginning of the object.
    package let offset: Int

    /// Text for a person; counts bytes from 1.
    public var description: String { "\(path.isEmpty ? "the event" : path) \(reason), at byte \(offset + 1)" }
}
