internal import Control
internal import Model

extension StatusReport {
    /// What `/readyz` and `/readyz/NAME` answer.
    var readiness: Readiness {
        let words = StatusText(self)
        let entries = destinations.map { destination in
            Readiness.Destination(
                name: destination.name, isReady: isReady(destination),
                line: words.destinationLine(destination),
                failing: destination.isFailing ? words.failingSince(destination) : nil)
        }
        return Readiness(obstacles: obstacles, destinations: entries)
    }

    /// Whether a destination does not fail, and delivers or has nothing to deliver. What a person has paused,
    /// switched off or removed from the configuration is not ready while events wait for it.
    private func isReady(_ destination: Destination) -> Bool {
        guard !destination.isFailing, !standingStill.contains(destination.name) else { return false }
        return destination.state == .active || destination.queued == 0
    }
}
