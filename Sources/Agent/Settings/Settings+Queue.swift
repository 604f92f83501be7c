internal import Configuration
internal import Intake
internal import Model
internal import Queue

extension Settings {
    var queueOptions: QueueOptions {
        var options = QueueOptions(
            stateDirectory: agent.stateDirectory, destinations: destinations.map { DestinationName($0.name) })
        options.maxSize = queue.maxSize
        options.maxAge = queue.maxAge
        for destination in destinations {
            let name = DestinationName(destination.name)
            options.maxAges[name] = destination.own.maxAge
            if destination.own.whenBehind == .skip { options.skipping.insert(name) }
        }
        options.durability = queue.durability
        options.whenFull = spool.whenFull
        options.deadLettersMaxSize = deadLetters.maxSize
        options.quarantineMaxSize = spool.quarantineMaxSize
        options.batchEvents = chunksByDefault.events
        options.batchBytes = chunksByDefault.bytes
        // Events come about in the order of their times, but apps have their own delays; a deadline goes by the time.
        options.eventTimeLookahead = deadlines.isEmpty ? 1 : 64
        return options
    }
}
