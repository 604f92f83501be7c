package import Model

/// One JSON object on each line: for Vector, Fluent Bit, OpenObserve, ClickHouse and most HTTP services.
/// The stored lines are the body, so a batch in one frame is sent without unpacking it.
package struct NDJSONEncoder: BatchEncoder {
    package init() {}

    /// No type is registered for NDJSON; receivers know this one.
    static let usualContentType = "application/x-ndjson"

    package var traits: FormatTraits {
        FormatTraits(contentType: NDJSONEncoder.usualContentType, sendsLinesAsStored: true)
    }

    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] { lines }
}
