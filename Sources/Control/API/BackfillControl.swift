public import Model

/// Requests of a backfill: old files go through the queue after everything else.
public protocol BackfillControl: Sendable {
    /// How far a file has been taken, and how large the next piece may be.
    func state(of key: String) async throws(ControlRefusal) -> BackfillState

    /// Takes a piece and how far it reaches, durably and together, or nothing of it; what became of its events.
    ///
    /// - Throws: `ControlRefusal` with code `later` (503) while other events go first, `elsewhere` (409) when the file has
    ///   been taken to another place than the one where the piece begins.
    func take(_ piece: BackfillPiece) async throws(ControlRefusal) -> IntakeLedger
}
