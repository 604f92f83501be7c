internal import EventLoops
internal import Model

/// Hands records to a producer of librdkafka, and waits for their reports.
///
/// A producer is made when records come, and ended 5 s after its last report, because librdkafka's threads
/// wake the process several times a second. A producer gets no more records if it is old, has failed, has
/// outdated credentials, or did not report in time. Runs on the loop passed to `init`.
actor KafkaClient: LoopActor {
    nonisolated let loop: EventLoop
    let options: KafkaOptions
    let time: any TimeSource
    /// Properties for the next producer.
    private var properties: KafkaProperties
    /// Access tokens for the brokers; nil for other logins.
    private let tokens: OAuth2Client?
    /// Counts changes of certificates and passwords; a producer of an older generation gets no more
    /// records.
    private var generation = 0

    /// All producers, by id: the current one, and those whose calls are not finished.
    private var producers: [UInt64: KafkaProducer] = [:]
    /// The producer for new records; nil if it must be made.
    private var current: KafkaProducer?
    /// Id of the latest producer.
    private var lastProducer: UInt64 = 0
    /// Calls that wait, by id.
    private var tickets: [UInt64: KafkaTicket] = [:]
    /// Id of the latest call.
    private var lastID: UInt64 = 0

    /// - Throws: `OutputError` if the token endpoint's address is not valid, or its certificates cannot be
    ///   read.
    init(
        _ options: KafkaOptions, _ files: FollowedFiles, on loop: EventLoop, time: any TimeSource
    ) throws(OutputError) {
        self.options = options
        properties = KafkaProperties(options, authorities: files.tls.authorities, secret: files.secret)
        tokens = try options.tokens(on: loop)
        try tokens?.use(files.secret)
        self.loop = loop
        self.time = time
    }

    /// Whether a producer exists, and with it the library's threads; for tests.
    var isAwake: Bool { !producers.isEmpty }

    /// Uses other certificates and passwords: records under way are finished by the old producer, new ones
    /// go to a new producer.
    func use(_ files: FollowedFiles) {
        properties = KafkaProperties(options, authorities: files.tls.authorities, secret: files.secret)
        // A key that cannot be used was reported when its file was read; the old one stays in use.
        try? tokens?.use(files.secret)
        generation += 1
        retireIfUseless()
    }

    /// Asks the token endpoint again: the next records go to a producer with another token.
    func dropToken() {
        guard let tokens else { return }
        tokens.dropIssued()
        generation += 1
        retireIfUseless()
    }

    /// Hands over records and waits until each is stored or has failed. Ends within `requestTimeout`, or at
    /// once when its task is cancelled.
    func publish(_ records: [KafkaRecord], headers: [(name: String, value: String)]) async -> TicketReport {
        let token: KafkaToken?
        do throws(CredentialFailure) { token = try await self.token() } catch {
            return TicketReport(outcomes: records.map { _ in error.outcome }, sentBytes: 0)
        }
        lastID += 1
        let id = lastID
        return await cancellable { continuation in
            let ticket = KafkaTicket(id, records, continuation)
            ticket.headers = headers
            begin(ticket, token)
        } onCancel: {
            $0.finish(id, nil)
        }
    }

    /// The token to give to a producer; nil for other logins. Throws if it cannot be obtained.
    private func token() async throws(CredentialFailure) -> KafkaToken? {
        guard let given = try await tokens?.token(time) else { return nil }
        // librdkafka measures expiry by the time of day.
        return KafkaToken(
            number: given.number, text: given.value.text,
            expires: given.expires.map { time.wallTime + ($0 - time.bootTime) },
            client: tokens?.name ?? "")
    }

    /// Registers a call with its timers, and hands its records to a producer.
    private func begin(_ ticket: KafkaTicket, _ token: KafkaToken?) {
        tickets[ticket.id] = ticket
        let id = ticket.id
        ticket.timer = after(options.settings.requestTimeout) { $0.timeOut(id) }
        ticket.questionTimer = after(min(.seconds(10), options.settings.requestTimeout / 2)) {
            $0.question(id)
        }
        let producer: KafkaProducer
        do throws(OutputError) { producer = try usableProducer(token) } catch {
            finish(id, .retry(error.failure))
            return
        }
        if let timer = producer.idleTimer {
            loop.cancel(timer)
        }
        producer.idleTimer = nil
        ticket.producer = producer
        producer.tickets.insert(id)
        pump(ticket)
    }

    /// The current producer if it may be used, otherwise a new one. A producer keeps its token for life, so
    /// another token needs another producer.
    private func usableProducer(_ token: KafkaToken?) throws(OutputError) -> KafkaProducer {
        retireIfUseless()
        if let current, current.token?.number == token?.number { return current }
        if let current {
            retire(current)
        }
        lastProducer += 1
        let id = lastProducer
        let producer = try KafkaProducer(
            id, properties, generation: generation, token, on: loop, at: time.bootTime)
        if let failure = producer.watch({ [weak self] in self?.assumeIsolated { $0.handleReports(of: id) } })
        {
            producer.close()
            throw OutputError(.library, failure.message)
        }
        producers[id] = producer
        current = producer
        return producer
    }

    /// Retires the current producer if it is too old or has outdated credentials.
    private func retireIfUseless() {
        guard let producer = current else { return }
        let age = time.bootTime - producer.openedAt
        if producer.generation != generation || age >= options.settings.maxConnectionAge {
            retire(producer)
        }
    }

    /// Gives a producer no more records; it is closed after its last call.
    private func retire(_ producer: KafkaProducer) {
        producer.isLeaving = true
        if current === producer {
            current = nil
        }
        if producer.tickets.isEmpty {
            close(producer)
        }
    }

    /// Closes a producer; whatever it has not sent is dropped.
    private func close(_ producer: KafkaProducer) {
        producers[producer.id] = nil
        producer.close()
    }

    /// Retires the producer with this id, if it still exists; for timers.
    private func retire(_ id: UInt64) {
        if let producer = producers[id] {
            retire(producer)
        }
    }

    // MARK: Handing over

    /// Hands over records until the library's queue is full. The rest follows when reports have made room.
    private func pump(_ ticket: KafkaTicket) {
        guard let producer = ticket.producer, producer.isOpen else { return }
        while ticket.next < ticket.items.count {
            let index = ticket.next
            let record = ticket.items[index]
            let code = producer.produce(record, headers: ticket.headers, mark: ticket.mark(index))
            if code == KafkaCode.queueFull, isAwaiting(producer) { return }
            ticket.next += 1
            if code == KafkaCode.none {
                // bounded: of a batch in memory.
                ticket.sentBytes += record.size
            } else {
                if KafkaAnswer.find(code).endsProducer {
                    retire(producer)
                }
                ticket.settle(
                    index,
                    KafkaAnswer.outcome(of: code, wireBytes: record.size, isOwnTopic: record.topic != nil))
            }
        }
        if ticket.isSettled {
            finish(ticket.id, nil)
        }
    }

    /// Whether a report is still to come, which will make room. Without one, waiting would last until the
    /// timeout.
    private func isAwaiting(_ producer: KafkaProducer) -> Bool {
        producer.tickets.contains { (tickets[$0]?.open ?? 0) > 0 }
    }

    // MARK: Reports

    /// Handles the reports of a producer.
    private func handleReports(of id: UInt64) {
        guard let producer = producers[id] else { return }
        for report in producer.reports() {
            switch report {
            case .record(let mark, let code): settle(mark, code, producer)
            case .error(let code, let words, let isFatal): note(code, words, isFatal: isFatal, producer)
            // Records in the producer have time to finish; the next call brings a newer token.
            case .tokenWanted: retire(producer)
            }
        }
        // The reports may have made room.
        for id in producer.tickets.sorted() {
            if let ticket = tickets[id], ticket.next < ticket.items.count || ticket.open == 0 {
                pump(ticket)
            }
        }
    }

    /// Handles the report of a record.
    private func settle(_ mark: UInt, _ code: Int32, _ producer: KafkaProducer) {
        let (id, index) = KafkaTicket.place(mark)
        // Too late: the call has ended.
        guard let ticket = tickets[id], ticket.items.indices.contains(index) else { return }
        if code == KafkaCode.none {
            if let timer = producer.searchTimer {
                loop.cancel(timer)
            }
            producer.searchTimer = nil
            producer.lastError = nil
            ticket.settle(index, .acknowledged)
            return
        }
        if KafkaAnswer.find(code).endsProducer {
            retire(producer)
        }
        // For a timeout, the last error of the producer says more than the timeout itself.
        let isLate = KafkaAnswer.find(code).kind == .timeout
        let reason: (code: Int32, words: String) = isLate ? producer.lastError ?? (code, "") : (code, "")
        let record = ticket.items[index]
        ticket.settle(
            index,
            KafkaAnswer.outcome(
                of: reason.code, words: reason.words, wireBytes: record.size, isOwnTopic: record.topic != nil)
        )
    }

    /// Handles an error that concerns no record. If all brokers are lost, the producer has `searchTime` to
    /// find one.
    private func note(_ code: Int32, _ words: String, isFatal: Bool, _ producer: KafkaProducer) {
        if !isConsequence(code, producer) {
            producer.lastError = (code, words)
        }
        guard code == KafkaCode.allBrokersDown || isFatal else { return }
        guard !isFatal, !isHeld(producer) else { return end(producer) }
        // A broker's name may have several addresses, and the broker may be starting: the library keeps
        // trying.
        guard producer.searchTimer == nil else { return }
        let id = producer.id
        producer.searchTimer = after(options.searchTime) { $0.giveUp(id) }
    }

    /// Whether an error only follows from the last one, which says more: TLS failed, a name is unknown, or
    /// a person must look.
    private func isConsequence(_ code: Int32, _ producer: KafkaProducer) -> Bool {
        guard let last = producer.lastError else { return false }
        if isHeld(producer) || code == KafkaCode.allBrokersDown { return true }
        let causes: [Failure.Kind] = [.tls, .resolve]
        let consequences: [Failure.Kind] = [.connection, .connect, .timeout]
        return causes.contains(KafkaAnswer.find(last.code).kind)
            && consequences.contains(KafkaAnswer.find(code).kind)
    }

    /// Whether the last error of a producer needs a person.
    private func isHeld(_ producer: KafkaProducer) -> Bool {
        producer.lastError.map { KafkaAnswer.find($0.code).action == .hold } ?? false
    }

    /// Ends a producer that found no broker within `searchTime`.
    private func giveUp(_ id: UInt64) {
        guard let producer = producers[id] else { return }
        producer.searchTimer = nil
        end(producer)
    }

    /// Retires a failed producer, and ends all its calls with its last error.
    private func end(_ producer: KafkaProducer) {
        let shared = outcome(of: producer.lastError ?? (KafkaCode.destroyed, ""), producer)
        retire(producer)
        for id in producer.tickets { finish(id, shared) }
    }

    /// The outcome of a producer's failure. If the brokers refuse its access token, another token is tried
    /// before a person must look.
    private func outcome(of reason: (code: Int32, words: String), _ producer: KafkaProducer?) -> Outcome {
        let outcome = KafkaAnswer.outcome(of: reason.code, words: reason.words)
        guard case .held(let failure) = outcome, KafkaCode.badLogin.contains(reason.code),
            tokens?.renewRefused(producer?.token?.number, at: time.bootTime) == true
        else { return outcome }
        return .retry(failure)
    }

    /// Asks the brokers for the topic after a long silence: the library does not report some errors, for
    /// example a topic that the user may not see. Blocks the loop for 500 ms at most.
    private func question(_ id: UInt64) {
        guard let ticket = tickets[id] else { return }
        ticket.questionTimer = nil
        guard ticket.settled == 0, let producer = ticket.producer, producer.lastError == nil else { return }
        let code = producer.look(for: .milliseconds(500))
        // Errors that were reported meanwhile are more exact.
        handleReports(of: producer.id)
        guard code != KafkaCode.none, code != KafkaCode.noAnswer, producer.isOpen, producer.lastError == nil
        else {
            return
        }
        producer.lastError = (code, "")
        if isHeld(producer) {
            end(producer)
        }
    }

    /// Ends a call whose time is over.
    private func timeOut(_ id: UInt64) {
        guard let ticket = tickets[id] else { return }
        ticket.timer = nil
        let reason = ticket.producer?.lastError ?? (KafkaCode.timedOut, "")
        // Records still in the producer would be sent in addition to those of the next attempt, so the
        // producer is not used again.
        if let producer = ticket.producer {
            retire(producer)
        }
        finish(id, outcome(of: reason, ticket.producer))
    }

    /// Ends a call; records without an outcome get `remaining`. A producer without calls is kept for
    /// `idleTime`.
    private func finish(_ id: UInt64, _ remaining: Outcome?) {
        guard let ticket = tickets.removeValue(forKey: id) else { return }
        for timer in [ticket.timer, ticket.questionTimer] { timer.map { loop.cancel($0) } }
        let isWhole = ticket.isSettled
        ticket.finish(remaining)
        guard let producer = ticket.producer else { return }
        producer.tickets.remove(id)
        // The call ended early: its records must not be sent while the next attempt sends them again.
        if !isWhole {
            retire(producer)
        }
        guard producer.tickets.isEmpty, producer.isOpen else { return }
        guard !producer.isLeaving else { return close(producer) }
        let idle = producer.id
        producer.idleTimer = after(options.idleTime) { $0.retire(idle) }
    }

    /// Makes a producer that asks for the topic, for `check`. Like `publish`, it gives up if no broker was
    /// found for `searchTime`. Blocks the loop.
    ///
    /// - Returns: `acknowledged` if a broker accepts the agent and has the topic; otherwise the failure.
    func look() async -> Outcome {
        let token: KafkaToken?
        do throws(CredentialFailure) { token = try await self.token() } catch { return error.outcome }
        let producer: KafkaProducer
        do throws(OutputError) { producer = try usableProducer(token) } catch {
            return error.failure.outcome
        }
        defer { retire(producer) }
        let end = time.bootTime + options.settings.connectTimeout
        var code = KafkaCode.timedOut
        var downSince: BootInstant?
        while time.bootTime < end {
            code = producer.look(for: min(.milliseconds(500), end - time.bootTime))
            if code == KafkaCode.noAnswer {
                code = KafkaCode.noConnection
            }
            guard code != KafkaCode.none, KafkaAnswer.find(code).action == .retry else { break }
            for case .error(let code, let words, let isFatal) in producer.reports() {
                note(code, words, isFatal: isFatal, producer)
                if code == KafkaCode.allBrokersDown {
                    downSince = downSince ?? time.bootTime
                }
            }
            if isHeld(producer) || !producer.isOpen { break }
            if let downSince, time.bootTime - downSince >= options.searchTime { break }
        }
        guard code != KafkaCode.none else { return .acknowledged }
        let isKnown = KafkaAnswer.find(code).action != .retry
        let reason: (code: Int32, words: String) = isKnown ? (code, "") : producer.lastError ?? (code, "")
        return outcome(of: reason, producer)
    }
}

extension KafkaRecord {
    /// Bytes of key and value, without headers.
    var size: Int { value.count + (key?.count ?? 0) }
}
