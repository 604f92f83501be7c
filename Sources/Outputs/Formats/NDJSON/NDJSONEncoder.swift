package import Model

/// One JSON object a line: for Vector, Fluent Bit, OpenObserve, ClickHouse and most HTTP services.
package struct NDJSONEncoder: BatchEncoder {
    package init() {}

    static let usualContentType = "application/x-ndjson"

    package var traits: FormatTraits {
        FormatTraits(contentType: NDJSONEncoder.usualContentType, sendsLinesAsStored: true)
    }

    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] { lines }
}
