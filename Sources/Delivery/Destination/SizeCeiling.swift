/// How large a body a destination takes, as learned from its refusals (fault 12).
///
/// The ceiling is the wire size of the smallest refused body less a tenth. Batches are measured in uncompressed bytes,
/// so the refused batch's own ratio of the two translates it. After 100 acknowledged batches it doubles, so that a
/// limit that was raised is found out; it lives in memory only and a reload forgets it.
struct SizeCeiling: Sendable, Equatable {
    /// The largest body that is tried, in bytes on the wire.
    private(set) var wireBytes: Int
    private var bytesPerWireByte: Double
    private var acknowledged = 0

    init(refusedWireBytes: Int, bytes: Int) {
        wireBytes = max(1, refusedWireBytes - refusedWireBytes / 10)
        bytesPerWireByte = Double(bytes) / Double(max(1, refusedWireBytes))
    }

    /// The largest batch that is formed, in uncompressed bytes.
    var bytes: Int { max(1, Int(min(Double(wireBytes) * bytesPerWireByte, 1e15))) }

    mutating func refuse(wireBytes refused: Int, bytes: Int) {
        let candidate = SizeCeiling(refusedWireBytes: refused, bytes: bytes)
        if candidate.wireBytes <= wireBytes { self = candidate }
    }

    mutating func acknowledge() {
        acknowledged += 1
        guard acknowledged >= 100 else { return }
        acknowledged = 0
        wireBytes = wireBytes.multipliedReportingOverflow(by: 2).overflow ? .max : wireBytes * 2
    }
}
