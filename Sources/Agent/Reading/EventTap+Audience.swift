public import Control
internal import Intake

/// Events are shown to whoever asks the control API for them.
extension EventTap: EventAudience {}
