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
//  - `SchemaSet` (this file): the schemas in force; `SchemaTable` finds the one of an event's name.
//  - `SchemaFiles`: reads the schemas of a directory.
//  - `SchemaCompiler`: makes `SchemaNode`s of a document, and refuses what is not supported.
//  - `SchemaWalk`: compares the bytes of an event with the nodes, without parsing it into values.
//
//  Rules:
//  - Everything is immutable after it was made, and may be used from any thread. A reload makes a new set.
//  - Schemas are the operator's, but a mistake in them must not stop the agent; hence 1,000 schemas of 256
//    KiB, 4,096 nodes and 64 expressions each. Events are hostile: an app may write any JSON.
//  - The caller has scanned the event before: it is valid JSON and nested at most 64 deep. `SchemaWalk`
//    relies on both.
//  - It knows nothing of the intake, the quarantine and the settings.
//
//  Begin with `SchemaSet.table(of:)` and `EventSchema.failure(in:)`, then `SchemaWalk.value`.

internal import Glibc
internal import Model

/// The schemas in force, by the names of events.
///
/// Unchecked, because nothing changes after `init`, and RE2 allows matching from any thread at any time.
public final class SchemaSet: @unchecked Sendable, Equatable {
    /// All schemas in a fixed order; the intake counts results by the index here.
    package let schemas: [EventSchema]
    /// Schemas for the events of all apps.
    private let ofAll: SchemaTable
    /// For each app with schemas of its own: those, and the ones for all apps that they do not replace.
    private let ofApp: [String: SchemaTable]

    /// A set of schemas. Of two with the same app and name, the later one counts.
    package init(_ schemas: [EventSchema]) {
        self.schemas = schemas
        var ofAll: [String: Int] = [:]
        var ofApp: [String: [String: Int]] = [:]
        for (place, schema) in schemas.enumerated() {
            if let app = schema.app {
                ofApp[app, default: [:]][schema.name] = place
            } else {
                ofAll[schema.name] = place
            }
        }
        self.ofAll = SchemaTable(ofAll)
        // An app's own schema replaces the one for all apps.
        self.ofApp = ofApp.mapValues { SchemaTable(ofAll.merging($0) { _, own in own }) }
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
    private let rows: [(name: [UInt8], place: Int)]

    fileprivate init(_ places: [String: Int]) {
        rows = places.map { (Array($0.key.utf8), $0.value) }.sorted { left, right in
            left.name.count == right.name.count
                ? left.name.lexicographicallyPrecedes(right.name) : left.name.count < right.name.count
        }
    }

    /// Whether no schema concerns the app; the caller then skips all checks.
    package var isEmpty: Bool { rows.isEmpty }

    /// Index of the schema in its set; nil for a name without a schema.
    ///
    /// - Parameter name: the bytes of the event's name. No string is made of them: this is done for every
    ///   event.
    package func place(of name: UnsafeBufferPointer<UInt8>) -> Int? {
        guard let text = name.baseAddress else { return nil }
        var low = 0
        var high = rows.count
        while low < high {
            let middle = (low + high) / 2
            let other = rows[middle].name
            let order =
                name.count == other.count ? Int(memcmp(text, other, other.count)) : name.count - other.count
            if order == 0 { return rows[middle].place }
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
    /// The member `version` of the document, for counters; empty if it is absent.
    package let version: String
    private let document: SchemaDocument

    /// Compiles a document.
    ///
    /// - Throws: `SchemaError` if it is not JSON, not a schema, or uses a keyword that is not supported.
    package init(app: String? = nil, name: String, _ bytes: [UInt8]) throws(SchemaError) {
        self.app = app
        self.name = name
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch { throw SchemaError("\(error)") }
        version = value["version"].flatMap { $0.string ?? $0.integer.map { "\($0)" } } ?? ""
        document = try SchemaCompiler.compile(value)
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
    /// Text for a person: where, what, and what to do.
    public let message: String

    package init(_ message: String) { self.message = message }

    /// An error at a place of the document.
    ///
    /// - Parameter pointer: JSON Pointer (RFC 6901) to the place; empty for the whole document.
    package init(at pointer: String, _ message: String) {
        self.message = "\(pointer.isEmpty ? "the schema" : pointer): \(message)"
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
