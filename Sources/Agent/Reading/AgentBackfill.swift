internal import Control
internal import Intake
internal import Model

/// What the control API asks of a backfill.
struct AgentBackfill: BackfillControl {
    let backfill: Backfill

    func state(of key: String) async throws(ControlRefusal) -> BackfillState { await backfill.state(of: key) }

    func take(_ piece: BackfillPiece) async throws(ControlRefusal) -> IntakeLedger {
        try await relaying(awaiting: try await backfill.take(piece), ControlRefusal.init(intake:))
    }
}

extension ControlRefusal {
    /// The error for a caller whose input the intake refuses.
    init(intake error: IntakeError) {
        let status =
            switch error.code {
            case .disabled, .noDestination, .elsewhere: 409
            case .tooLarge: 413
            case .full, .store: 500
            case .later, .stopping: 503
            }
        self.init(status: status, code: error.word, message: error.message)
    }
}
