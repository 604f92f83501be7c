/// Largest body that a destination accepts, as learned from its refusals (413, RFC 9110, section 15.5.14).
///
/// The ceiling is the wire size of the smallest refused body less a tenth. Batches are measured in
/// uncompressed bytes, so the refused batch's own ratio of the two translates it. After 100 acknowledged
/// batches the ceiling doubles, so that a raised limit is found. It survives a restart with the same
/// settings; otherwise each restart would send the largest batches again and have them refused.
struct SizeCeiling: Sendable, Equatable {
    /// Largest body that is tried, in bytes on the wire.
    private(set) var wireBytes: Int
    /// Compression ratio of the last refused batch.
    private var bytesPerWireByte: Double
    /// Batches acknowledged since the ceiling last changed.
    private var acknowledged = 0

    /// The ceiling after a first refusal.
    init(refusedWireBytes: Int, bytes: Int) {
        wireBytes = max(1, refusedWireBytes - refusedWireBytes / 10)
        bytesPerWireByte = Double(bytes) / Double(max(1, refusedWireBytes))
    }

    /// Largest batch to form, in uncompressed bytes.
    var bytes: Int { max(1, Int(min(Double(wireBytes) * bytesPerWireByte, 1e15))) }

    /// The ceiling that an earlier run made durable; nil if it was learned with other settings or the text is
    /// malformed.
    init?(stored: String, fingerprint: String) {
        let parts = stored.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2] == fingerprint, let wireBytes = Int(parts[0]),
            let bytes = Int(parts[1]),
            wireBytes > 0, bytes > 0
        else { return nil }
        self.wireBytes = wireBytes
        bytesPerWireByte = Double(bytes) / Double(wireBytes)
    }

    /// The durable form: both sizes, and the fingerprint of the settings.
    func stored(fingerprint: String) -> String { "\(wireBytes) \(bytes) \(fingerprint)" }

    /// Lowers the ceiling after a refusal; a refusal above it changes nothing.
    mutating func refuse(wireBytes refused: Int, bytes: Int) {
        let candidate = SizeCeiling(refusedWireBytes: refused, bytes: bytes)
        if candidate.wireBytes <= wireBytes {
            self = candidate
        }
    }

    /// Counts an acknowledged batch, and doubles the ceiling after each hundred.
    mutating func acknowledge() {
        acknowledged += 1
        guard acknowledged >= 100 else { return }
        acknowledged = 0
        wireBytes = wireBytes.multipliedReportingOverflow(by: 2).overflow ? .max : wireBytes * 2
    }
}
