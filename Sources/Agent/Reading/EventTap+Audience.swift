public import Control
internal import Intake

/// The tap shows events to clients of the control API (`GET /v1/tap`).
extension EventTap: EventAudience {}
