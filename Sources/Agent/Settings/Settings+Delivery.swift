internal import Configuration
internal import Delivery
internal import Digests
internal import EventLoops
internal import Model
internal import Outputs
internal import TimeZones

extension Settings {
    /// The options of delivery.
    ///
    /// - Parameter installID: determines at which phase of the interval this machine sends, so that a fleet
    ///   does not send all at once.
    /// - Throws: `AgentError` with code `configuration` for an unknown time zone.
    func deliveryOptions(of installID: String? = nil) throws(AgentError) -> DeliveryOptions {
        if let app = appOfUnknownZone {
            throw AgentError(
                .configuration, "apps.\(app).time.zone is not a time zone that this system knows")
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
                options.isIntervalSet = isIntervalSet(for: destination)
                options.jitter = dispatch.jitter
                options.criticalDelay = destination.own.criticalDelay
                options.retry = schedule
                options.whenExhausted = retry.whenExhausted
                options.probeInterval = retry.probeInterval
                options.requestsPerSecond = destination.rateLimit > 0 ? destination.rateLimit : nil
                // GA4 limits the events of a request, so a batch makes several requests, which the rate limit
                // must count.
                let isBounded = destination.format == .ga4
                options.eventsPerRequest = isBounded ? GA4Encoder.eventsInRequest : nil
                options.recognisesRepeats = destination.recognisesRepeats
                options.deadlines = views.filter { $0.0.applies(to: destination.name) }.map(\.1)
                options.fingerprint = destination.fingerprint(SHA256.hexadecimal)
                return options
            })
        options.interval = dispatch.interval
        options.criticalDelay = dispatch.criticalDelay
        options.batchOnSize = dispatch.batchOnSize
        // 52 bits of a hash of the id, as a fraction from 0 up to 1.
        options.phase = installID.flatMap { UInt64(SHA256.hexadecimal(Array($0.utf8)).prefix(13), radix: 16) }
            .map { Double($0) * 0x1p-52 }
        return options
    }

    /// Whether a file or a container sets the interval in force for a destination; not if it is a default, be
    /// it of the destination's type.
    private func isIntervalSet(for destination: DestinationSettings) -> Bool {
        let name = SettingValue.key(destination.name)
        let section = destination.own.interval == nil ? "dispatch" : "destination.\(name)"
        switch origin(of: "\(section).interval.every") {
        case .standard, .type: return false
        case .file, .container: return true
        }
    }

    /// How many events may wait for each destination while old files are read: twice as many as it sends at a
    /// time.
    var backfillDepths: [DestinationName: Int] {
        let depths = destinations.map { destination in
            let dispatch = dispatch(for: destination)
            // bounded: both settings are at most a few thousand.
            return (
                DestinationName(destination.name), 2 * dispatch.batchMostEvents * dispatch.parallelBatches
            )
        }
        return Dictionary(depths) { $1 }
    }

    /// The hosts to which routes must lead: the servers of each destination, or its proxy, and the servers of
    /// containers.
    var networkTargets: [DestinationName: [NetworkTarget]] {
        var targets: [DestinationName: [NetworkTarget]] = [:]
        for destination in destinations {
            let addresses = destination.proxy.map { [$0] } ?? destination.addresses
            guard !addresses.isEmpty else { continue }
            var servers = addresses.map { NetworkTarget(host: $0.host) }
            // The destination may be connected to a server that another server announced, whose address is
            // not known here.
            if destination.learnsOfServers, !servers.contains(.local), !servers.contains(.name) {
                servers.append(.name)
            }
            targets[DestinationName(destination.name)] = servers
        }
        // The prefix is unique: names of destinations have no colon.
        for container in containers {
            guard let url = container.url else { continue }
            targets[DestinationName(NetworkNews.prefix + container.id)] = [NetworkTarget(host: url.host)]
        }
        return targets
    }
}

extension NetworkNews {
    /// The prefix of a container's id among the names of destinations.
    static let prefix = "container:"

    /// The news for delivery, and the news for containers, by their ids.
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
    /// True if the deadline is for this destination; a deadline without destinations is for all.
    fileprivate func applies(to destination: String) -> Bool {
        destinations.isEmpty || destinations.contains(destination)
    }

    /// The deadline with its time zone loaded.
    fileprivate func view() throws(AgentError) -> Deadline {
        let zone = try relaying(try TimeZoneLoader().load(timeZone)) { (error: TimeZoneError) in
            AgentError(.configuration, "deadline \(name): \(error.message)")
        }
        return Deadline(
            // bounded: a time of day.
            name: name, secondOfDay: Int(time.components.seconds), zone: zone, margin: margin, apps: Set(apps)
        )
    }
}

extension DestinationSettings {
    /// True if it also connects to servers that its servers name.
    fileprivate var learnsOfServers: Bool {
        switch reach {
        case .kafka: true
        case .nats(let nats): nats.followCluster && proxy == nil
        case .http, .s3, .syslog, .file, .stdout: false
        }
    }

    /// The order that the receiver needs. Loki refuses entries that are much older than the newest of their
    /// stream; readers of Kafka want the records of a session in order; syslog wants all messages in order.
    /// With several parallel batches of its own a destination wants speed instead.
    fileprivate var order: DestinationOptions.Order {
        guard own.parallelBatches ?? 1 == 1 else { return .free }
        return switch reach {
        case .kafka(let kafka): kafka.key == "none" ? .free : .promised
        case .syslog: .promised
        case .http: format == .loki ? .kept : .free
        case .s3, .nats, .file, .stdout: .free
        }
    }
}

extension DestinationSettings {
    /// True if the receiver can recognise a repeated batch: by the batch's id, the events' ids, or equal
    /// times and lines.
    fileprivate var recognisesRepeats: Bool {
        switch reach {
        case .http(let http):
            switch http.format {
            case .otlp, .splunkHEC, .ga4, .appCenter: false
            case .ndjson, .json, .elasticsearch, .loki, .template: true
            }
        case .kafka, .syslog: false
        case .s3, .nats, .file, .stdout: true
        }
    }
}
