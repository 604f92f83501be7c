internal import Configuration
internal import Delivery
internal import Digests
internal import EventLoops
internal import Model
internal import Outputs
internal import TimeZones

extension Settings {
    /// The settings of delivery.
    ///
    /// - Parameter installID: what the phase is made from in which this machine sends.
    /// - Throws: `AgentError` with code `configuration` for what has no meaning.
    func deliveryOptions(of installID: String? = nil) throws(AgentError) -> DeliveryOptions {
        if let app = appOfUnknownZone {
            throw AgentError(.configuration, "apps.\(app).time_zone is not a time zone that this system knows")
        }
        let schedule = RetrySchedule(intervals: retry.intervals, jitter: retry.jitter)
        let views = try deadlines.map { deadline throws(AgentError) in (deadline, try deadline.view()) }
        var options = DeliveryOptions(
            to: destinations.map { destination in
                let dispatch = dispatch(for: destination)
                var options = DestinationOptions(to: DestinationName(destination.name))
                options.batchEvents = dispatch.batchEvents
                options.batchMostEvents = dispatch.batchMostEvents
                options.batchBytes = dispatch.batchSize
                options.parallelBatches = dispatch.parallelBatches
                options.order = destination.order
                options.interval = destination.own.interval
                options.criticalDelay = destination.own.criticalDelay
                options.retry = schedule
                options.whenExhausted = retry.whenExhausted
                options.probeInterval = retry.probeInterval
                options.requestsPerSecond = destination.rateLimit > 0 ? destination.rateLimit : nil
                let isBounded = destination.kind == .http && destination.format == .ga4
                options.eventsPerRequest = isBounded ? GA4Encoder.eventsInRequest : nil
                options.deadlines = views.filter { $0.0.applies(to: destination.name) }.map(\.1)
                options.fingerprint = destination.fingerprint(SHA256.hexadecimal)
                return options
            })
        options.interval = dispatch.interval
        options.criticalDelay = dispatch.criticalDelay
        options.batchOnSize = dispatch.batchOnSize
        options.phase = installID.flatMap { UInt64(SHA256.hexadecimal(Array($0.utf8)).prefix(13), radix: 16) }
            .map { Double($0) * 0x1p-52 }
        return options
    }

    /// How many events may wait for each destination while old files are read: twice what it takes at a time.
    var backfillDepths: [DestinationName: Int] {
        let depths = destinations.map { destination in
            let dispatch = dispatch(for: destination)
            // bounded: both are settings of a few thousand.
            return (DestinationName(destination.name), 2 * dispatch.batchMostEvents * dispatch.parallelBatches)
        }
        return Dictionary(depths) { $1 }
    }

    /// Where each destination's servers are, or the proxy before them, and where containers are fetched from.
    var networkTargets: [DestinationName: [NetworkTarget]] {
        var targets: [DestinationName: [NetworkTarget]] = [:]
        for destination in destinations {
            let addresses = destination.proxy.map { [$0] } ?? destination.addresses
            guard !addresses.isEmpty else { continue }
            var servers = addresses.map { NetworkTarget(host: $0.host) }
            // It may be connected to a server that another one named, whose address is not known here.
            if destination.learnsOfServers, !servers.contains(.local), !servers.contains(.name) {
                servers.append(.name)
            }
            targets[DestinationName(destination.name)] = servers
        }
        // No destination is called like that: their names have no colon.
        for container in containers {
            guard let url = container.url else { continue }
            targets[DestinationName(NetworkNews.prefix + container.id)] = [NetworkTarget(host: url.host)]
        }
        return targets
    }
}

extension NetworkNews {
    static let prefix = "container:"

    /// What is for delivery, and what is for the containers, by their ids.
    var split: (delivery: NetworkNews, containers: [String: Bool]) {
        var containers: [String: Bool] = [:]
        var delivery = self
        for (name, isReached) in routes where name.text.hasPrefix(NetworkNews.prefix) {
            containers[String(name.text.dropFirst(NetworkNews.prefix.count))] = isReached
            delivery.routes[name] = nil
        }
        return (delivery, containers)
    }
}

extension DeadlineSettings {
    fileprivate func applies(to destination: String) -> Bool {
        destinations.isEmpty || destinations.contains(destination)
    }

    fileprivate func view() throws(AgentError) -> Deadline {
        let zone = try relaying(try TimeZoneLoader().load(timeZone)) { (error: TimeZoneError) in
            AgentError(.configuration, "deadline \(name): \(error.message)")
        }
        return Deadline(
            // bounded: a time of day.
            name: name, secondOfDay: Int(time.components.seconds), zone: zone, margin: margin, apps: Set(apps))
    }
}

extension DestinationSettings {
    /// Whether it connects to further servers that its servers name.
    fileprivate var learnsOfServers: Bool {
        switch kind {
        case .kafka: true
        case .nats: nats.followCluster && proxy == nil
        default: false
        }
    }

    /// Loki refuses what is long behind its stream, and Kafka's readers want a session's records in order. Who sets more places of
    /// its own wants speed instead.
    fileprivate var order: DestinationOptions.Order {
        guard own.parallelBatches ?? 1 == 1 else { return .free }
        return switch kind {
        case .kafka: kafka.key == "none" ? .free : .promised
        case .http where format == .loki: .kept
        default: .free
        }
    }
}
