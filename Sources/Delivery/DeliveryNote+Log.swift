internal import EventLoops
internal import Logs
internal import Model

extension DeliveryNote {
    /// Writes the note to the log. Levels: error if a person has to act, warning if a person should know,
    /// info for the rest.
    ///
    /// The end of a state that was logged as a warning or an error is a warning too, so that a log filtered
    /// by level shows how it ended.
    func write(to log: Log, _ name: DestinationName?) {
        let destination = name?.text ?? "all"
        switch self {
        case .failed(let batch, let failure, let attempt, let wait):
            log.warning(
                "delivery failed",
                [
                    "destination": destination, "batch": batch, "reason": failure.summary, "attempt": attempt,
                    "retry_in": wait.brief,
                ])
        case .held(let failure, let wait):
            log.error(
                "destination is held: it or its settings are wrong, nothing is lost",
                ["destination": destination, "reason": failure.summary, "next_try_in": wait.brief])
        case .holdLifted: log.warning("destination is no longer held", ["destination": destination])
        case .breakerOpened(let failure, let wait):
            log.error(
                "destination failed too often: sending is suspended, nothing is lost",
                [
                    "destination": destination, "reason": failure.summary,
                    "next_try_in": wait?.brief ?? "after resume or a network change",
                ])
        case .breakerClosed: log.warning("destination has recovered", ["destination": destination])
        case .recovered(let failures):
            log.warning(
                "destination has recovered", ["destination": destination, "failed_attempts": failures])
        case .retryAfter(let wait, let failure):
            log.warning(
                "destination asked to wait",
                ["destination": destination, "reason": failure.summary, "wait": wait.brief])
        case .offline: log.warning("no route to the destination", ["destination": destination])
        case .online: log.warning("a route to the destination exists again", ["destination": destination])
        case .split(let batch, let events, let parts, let failure):
            log.info(
                "batch split",
                [
                    "destination": destination, "batch": batch, "events": events, "parts": parts,
                    "reason": failure.summary,
                ])
        case .deadLettered(let batch, let events, let failure):
            log.warning(
                "destination rejected events: they are dead letters",
                ["destination": destination, "batch": batch, "events": events, "reason": failure.summary])
        case .rejectedUnnamed(let batch, let events, let failure):
            log.warning(
                "destination accepted a batch and rejected some of its events without naming them: they are lost",
                ["destination": destination, "batch": batch, "events": events, "reason": failure.summary])
        case .setAside(let batch, let events, let failure, let app):
            log.warning(
                "batch set aside: it keeps failing while others succeed",
                [
                    "destination": destination, "batch": batch, "events": events, "app": app ?? "several",
                    "reason": failure.summary,
                ])
        case .storeFailed(let wait):
            log.error("queue cannot be used", ["destination": destination, "next_try_in": wait.brief])
        case .paused(let token):
            log.warning("sending is paused", ["destination": destination, "token": token])
        case .pauseKept(let token):
            log.warning(
                "sending was paused before the start: nothing is sent until `spoolship resume`",
                ["destination": destination, "token": token])
        case .resumed(let token): log.warning("pause released", ["destination": destination, "token": token])
        case .network(let on): log.warning(on ? "network is on" : "network is off: nothing is sent")
        case .interval(let interval): log.info("dispatch interval changed", ["interval": interval])
        }
    }
}

extension Failure {
    /// Kind, status and message for the log. The failure's excerpt of the answer is left out, because it may
    /// quote an event.
    var summary: String {
        let status = status.map { " \($0)" } ?? ""
        return "\(kind.rawValue)\(status): \(message)"
    }
}

extension Duration {
    /// The length for the log: whole milliseconds below a second, else seconds with at most one decimal.
    var brief: String {
        let milliseconds = nanosecondsClamped / 1_000_000
        if milliseconds < 1000 { return "\(milliseconds)ms" }
        return milliseconds % 1000 < 100 ? "\(milliseconds / 1000)s" : "\(Double(milliseconds / 100) / 10)s"
    }
}
