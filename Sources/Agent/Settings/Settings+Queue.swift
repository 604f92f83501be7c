internal import Configuration
internal import Intake
internal import Model
internal import Queue

extension Settings {
    /// The options of the queue.
    var queueOptions: QueueOptions {
        var options = QueueOptions(
            stateDirectory: agent.stateDirectory, destinations: destinations.map { DestinationName($0.name) })
        options.maxSize = queue.maxSize
        options.maxAge = queue.maxAge
        for destination in destinations {
            let name = DestinationName(destination.name)
            options.maxAges[name] = destination.own.maxAge
            options.purposes[name] = destination.purposes
            // A full queue evicts the oldest events of this destination instead of waiting for it.
            if destination.own.whenBehind == .skip {
                options.skipping.insert(name)
            }
        }
        options.appMaxAges = apps.compactMapValues(\.maxAge)
        options.durability = queue.durability
        options.whenFull = spool.whenFull
        options.deadLettersMaxSize = deadLetters.maxSize
        options.quarantineMaxSize = spool.quarantineMaxSize
        // Batches are as large as the chunks of the default route.
        options.batchEvents = chunksByDefault.events
        options.batchBytes = chunksByDefault.bytes
        // Events arrive roughly in the order of their times, but each app has its own delay, and a deadline
        // depends on the time.
        options.eventTimeLookahead = deadlines.isEmpty ? 1 : 64
        return options
    }
}
