//  Containers: remotely managed values, rules, macros and tags. It reads documents, decides which one is in
//  force, and applies it to events.
//
//  What it promises. A document in force was checked as a whole, and what it costs in time and memory is
//  bounded whatever it says. A document can only set and call what the configuration lets it. A rule that is
//  to hide something hides it, or discards the event. Published documents take effect only if a trusted key
//  has signed them, and never an older version. Evaluation never waits: an event that needs a function's
//  answer reports them, and is evaluated again.
//
//  What it knows. It is given a fetcher, clocks and the facts of the machine; it knows nothing of the queue,
//  of HTTP or of the reader's files. `Agent` has the shell: `ContainerKeeper` fetches, stores and publishes.
//
//  Parts, by folder:
//  - `Documents`: a document as parsed values (`ContainerDocument`), with its grammar (`DocumentNode`), its
//    limits (`DocumentLimits`), expressions (`WhenExpression`), and rules of the configuration file
//    (`WrittenRule`).
//  - `Rules/Compiling`: documents in the form that events are tried with (`CompiledContainer`).
//  - `Rules/Evaluation`: `RuleEngine` applies compiled containers to an event. Begin reading here, with
//    `apply`.
//  - `Rules`: what the engine reads (`DataLayer`, `PathFinder`) and how it changes an event (`EventEditor`).
//  - `Sources`: which document is in force, and when it is fetched: `ContainerMachine`, a state machine
//    without I/O. The default file on the machine: `DefaultFile`.
//  - `Signatures`: Ed25519 signatures before a document. `Functions`: programs that rules and tags may call.
//  - `Trials`: runs a document's test cases and explains its effect, for `spoolship container test`.
//
//  Rules:
//  - A document is hostile until it is compiled: sizes, counts and depths have limits, regular expressions
//    are RE2. An event is hostile always.
//  - Documents and compiled containers are immutable values, used by any thread. The engine, the data layers
//    and the functions belong to the reader's loop.
//  - In doubt a member is hidden (DESIGN.md, "Redaction fails closed").

/// Why a document or a container cannot be used. The previous document stays in force.
public struct ContainerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of errors. Closed, because each is the label of a metric.
    public enum Code: String, Sendable, CaseIterable {
        /// Not JSON, or not UTF-8.
        case notJSON = "not_json"
        /// JSON that is not a container: an unknown member, a wrong type, a reference to a name that is not
        /// defined.
        case form
        /// More than a limit of size, count or depth allows.
        case limit
        /// A regular expression that RE2 does not accept.
        case expression
        /// Not signed, or not by a trusted key.
        case signature
        /// A version that must not follow the one in force: lower, or the same with another content.
        case version
        /// The document of another container.
        case id
        /// The document's expiry date has passed.
        case expired
        /// A file that cannot be read, or that untrusted users could change.
        case file
    }

    /// The kind of failure, for programs and metrics.
    public let code: Code

    /// Path in the document, as `rules.music.conditions[0]`; empty for the document as a whole.
    public let path: String

    /// What is wrong and what to do, in one line for a person. It may quote names of the document, never
    /// events or secrets.
    public let message: String

    /// Column in an expression, in characters from 1; nil outside of expressions. The message begins with it.
    package let column: Int?

    /// An error.
    package init(_ code: Code, at path: String = "", _ message: String, column: Int? = nil) {
        self.code = code
        self.path = path
        self.message = message
        self.column = column
    }

    /// Path and message, in one line.
    public var description: String { path.isEmpty ? message : "\(path): \(message)" }
}
