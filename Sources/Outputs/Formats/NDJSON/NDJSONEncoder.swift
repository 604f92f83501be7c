public import EventLoops
public import Model

/// One JSON object a line: for Vector, Fluent Bit, OpenObserve, ClickHouse and most HTTP services.
public struct NDJSONEncoder: BatchEncoder {
    package init() {}

    static let usualContentType = "application/x-ndjson"

    /// `application/x-ndjson`.
    public var contentType: String { NDJSONEncoder.usualContentType }
    /// The body is what the queue stores.
    public var sendsLinesAsStored: Bool { true }

    /// The lines.
    public func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] { lines }
}
