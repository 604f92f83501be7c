internal import Delivery
internal import Model
internal import Queue

extension QueueStore {
    /// The summaries of the lanes of configured destinations, as delivery needs them.
    nonisolated var lanes: [DestinationName: Lanes] {
        var lanes: [DestinationName: Lanes] = [:]
        for lane in snapshot.lanes where lane.isConfigured {
            lanes[lane.destination, default: Lanes()][lane.priority] = lane.summary
        }
        return lanes
    }

    /// Why the queue cannot store events, for `/readyz`. A full queue is not named here: the destinations
    /// that fill it are reported instead.
    nonisolated var obstacles: [String] {
        let state = snapshot
        var obstacles: [String] = []
        if let failure = state.health.failure {
            obstacles.append("the queue cannot be written: \(failure.message)")
        }
        if let failure = state.health.commitFailure {
            obstacles.append("events cannot be stored, and will be tried again: \(failure.message)")
        }
        switch state.accepting {
        // A full queue is normal while a destination is down; the destinations that fill it are named by
        // `AgentStatus`.
        case .all, .critical, .nothing(.full): break
        case .nothing(.diskFull): obstacles.append("the disk of the state directory is full")
        case .nothing(.notWritable) where state.health.failure == nil:
            obstacles.append("the state directory cannot be written")
        case .nothing(.walPinned):
            let reader = state.walReader ?? "another program"
            obstacles.append("\(reader) keeps the queue's WAL from being written back; end it")
        // `failure` above has reported it.
        case .nothing(.notWritable), .nothing(.outOfReach): break
        }
        return obstacles
    }
}
