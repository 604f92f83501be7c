internal import EventLoops
internal import Model

/// Hands records to a producer and waits for their reports.
///
/// The producer is made when the first records come, and ended some seconds after the last report: an idle agent has no
/// thread of librdkafka's. One that is old, has failed or kept somebody waiting for too long is given nothing more.
/// Lives on the loop that it is given.
actor KafkaClient: LoopActor {
    nonisolated let loop: EventLoop
    let options: KafkaOptions
    let time: any TimeSource
    private var properties: KafkaProperties
    /// Where access tokens come from; nil where brokers are shown none.
    private let tokens: OAuth2Client?
    /// Counts changes of certificates and passwords.
    private var generation = 0

    private var producers: [UInt64: KafkaProducer] = [:]
    private var current: KafkaProducer?
    private var lastProducer: UInt64 = 0
    private var tickets: [UInt64: KafkaTicket] = [:]
    private var lastID: UInt64 = 0

    /// - Throws: `OutputError`: the token endpoint has no address, or its certificates cannot be read.
    init(
        _ options: KafkaOptions, _ files: FollowedFiles, on loop: EventLoop, time: any TimeSource
    ) throws(OutputError) {
        self.options = options
        properties = KafkaProperties(options, authorities: files.tls.authorities, secret: files.secret)
        tokens = try options.tokens(on: loop)
        tokens?.use(files.secret)
        self.loop = loop
        self.time = time
    }

    var isAwake: Bool { !producers.isEmpty }

    /// Other certificates and passwords: what is on its way ends as it began, everything else goes to a new producer.
    func use(_ files: FollowedFiles) {
        properties = KafkaProperties(options, authorities: files.tls.authorities, secret: files.secret)
        tokens?.use(files.secret)
        generation += 1
        retireIfUseless()
    }

    /// Hands over records and waits for their fate: for `requestTimeout`, or until its task is cancelled.
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

    private func token() async throws(CredentialFailure) -> KafkaToken? {
        guard let given = try await tokens?.token(time) else { return nil }
        // The library knows the wall clock only.
        return KafkaToken(
            number: given.number, text: given.value.text,
            expires: given.expires.map { time.wallTime + ($0 - time.bootTime) },
            client: options.settings.oauth2.clientID)
    }

    private func begin(_ ticket: KafkaTicket, _ token: KafkaToken?) {
        tickets[ticket.id] = ticket
        let id = ticket.id
        ticket.timer = after(options.settings.requestTimeout) { $0.timeOut(id) }
        ticket.questionTimer = after(min(.seconds(10), options.settings.requestTimeout / 2)) { $0.question(id) }
        let producer: KafkaProducer
        do throws(OutputError) { producer = try usableProducer(token) } catch {
            finish(id, .retry(error.failure))
            return
        }
        if let timer = producer.idleTimer { loop.cancel(timer) }
        producer.idleTimer = nil
        ticket.producer = producer
        producer.tickets.insert(id)
        pump(ticket)
    }

    /// The producer, if it may be used again, or else a new one.
    private func usableProducer(_ token: KafkaToken?) throws(OutputError) -> KafkaProducer {
        retireIfUseless()
        if let current, current.token?.number == token?.number { return current }
        if let current { retire(current) }
        lastProducer += 1
        let id = lastProducer
        let producer = try KafkaProducer(id, properties, generation: generation, token, on: loop, at: time.bootTime)
        if let failure = producer.watch({ [weak self] in self?.assumeIsolated { $0.take(from: id) } }) {
            producer.close()
            throw OutputError(.library, failure.message)
        }
        producers[id] = producer
        current = producer
        return producer
    }

    private func retireIfUseless() {
        guard let producer = current else { return }
        let age = time.bootTime - producer.openedAt
        if producer.generation != generation || age >= options.settings.maxConnectionAge { retire(producer) }
    }

    /// Gives it nothing more; it ends with its last call.
    private func retire(_ producer: KafkaProducer) {
        producer.isLeaving = true
        if current === producer { current = nil }
        if producer.tickets.isEmpty { close(producer) }
    }

    private func close(_ producer: KafkaProducer) {
        producers[producer.id] = nil
        producer.close()
    }

    private func retire(_ id: UInt64) {
        if let producer = producers[id] { retire(producer) }
    }

    // MARK: Handing over

    /// Hands over as many as the library takes.
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
                if KafkaAnswer.find(code).endsProducer { retire(producer) }
                ticket.settle(
                    index, KafkaAnswer.outcome(of: code, wireBytes: record.size, isOwnTopic: record.topic != nil))
            }
        }
        if ticket.isSettled { finish(ticket.id, nil) }
    }

    /// Whether reports will come, after which there is room again.
    private func isAwaiting(_ producer: KafkaProducer) -> Bool {
        producer.tickets.contains { (tickets[$0]?.open ?? 0) > 0 }
    }

    // MARK: Reports

    private func take(from id: UInt64) {
        guard let producer = producers[id] else { return }
        for report in producer.reports() {
            switch report {
            case .record(let mark, let code): settle(mark, code, producer)
            case .error(let code, let words, let isFatal): note(code, words, isFatal: isFatal, producer)
            // What is in it has time to end; the next call brings a newer token.
            case .tokenWanted: retire(producer)
            }
        }
        // There may be room again.
        for id in producer.tickets.sorted() {
            if let ticket = tickets[id], ticket.next < ticket.items.count || ticket.open == 0 { pump(ticket) }
        }
    }

    private func settle(_ mark: UInt, _ code: Int32, _ producer: KafkaProducer) {
        let (id, index) = KafkaTicket.place(mark)
        // Late: its call has ended.
        guard let ticket = tickets[id], ticket.items.indices.contains(index) else { return }
        if code == KafkaCode.none {
            if let timer = producer.searchTimer { loop.cancel(timer) }
            producer.searchTimer = nil
            producer.lastError = nil
        } else if KafkaAnswer.find(code).endsProducer {
            retire(producer)
        }
        // Why it came too late is known better than that it did.
        let isLate = KafkaAnswer.find(code).kind == .timeout
        let reason: (code: Int32, words: String) = isLate ? producer.lastError ?? (code, "") : (code, "")
        let record = ticket.items[index]
        ticket.settle(
            index,
            KafkaAnswer.outcome(
                of: reason.code, words: reason.words, wireBytes: record.size, isOwnTopic: record.topic != nil))
    }

    private func note(_ code: Int32, _ words: String, isFatal: Bool, _ producer: KafkaProducer) {
        if !isConsequence(code, producer) { producer.lastError = (code, words) }
        guard code == KafkaCode.allBrokersDown || isFatal else { return }
        guard !isFatal, !isHeld(producer) else { return end(producer) }
        // A name may have several addresses, and a broker may be starting: the library goes on trying.
        guard producer.searchTimer == nil else { return }
        let id = producer.id
        producer.searchTimer = after(options.searchTime) { $0.giveUp(id) }
    }

    /// Whether an error only follows from the last: that TLS failed, a name is not known, or a person must look.
    private func isConsequence(_ code: Int32, _ producer: KafkaProducer) -> Bool {
        guard let last = producer.lastError else { return false }
        if isHeld(producer) || code == KafkaCode.allBrokersDown { return true }
        let causes: [Failure.Kind] = [.tls, .resolve]
        let consequences: [Failure.Kind] = [.connection, .connect, .timeout]
        return causes.contains(KafkaAnswer.find(last.code).kind) && consequences.contains(KafkaAnswer.find(code).kind)
    }

    private func isHeld(_ producer: KafkaProducer) -> Bool {
        producer.lastError.map { KafkaAnswer.find($0.code).action == .hold } ?? false
    }

    private func giveUp(_ id: UInt64) {
        guard let producer = producers[id] else { return }
        producer.searchTimer = nil
        end(producer)
    }

    /// The producer is of no more use: all its calls end with what went wrong.
    private func end(_ producer: KafkaProducer) {
        let shared = outcome(of: producer.lastError ?? (KafkaCode.destroyed, ""), producer)
        retire(producer)
        for id in producer.tickets { finish(id, shared) }
    }

    /// What a failure of a producer means: where the brokers refuse its access token, another one is tried before a person must look.
    private func outcome(of reason: (code: Int32, words: String), _ producer: KafkaProducer?) -> Outcome {
        let outcome = KafkaAnswer.outcome(of: reason.code, words: reason.words)
        guard case .held(let failure) = outcome, KafkaCode.badLogin.contains(reason.code),
            tokens?.renewRefused(producer?.token?.number, at: time.bootTime) == true
        else { return outcome }
        return .retry(failure)
    }

    /// After long silence, asks the brokers for the topic: the library keeps some errors to itself, as of hidden topics.
    private func question(_ id: UInt64) {
        guard let ticket = tickets[id] else { return }
        ticket.questionTimer = nil
        guard ticket.settled == 0, let producer = ticket.producer, producer.lastError == nil else { return }
        let code = producer.look(for: .milliseconds(500))
        // What has been reported meanwhile knows better.
        take(from: producer.id)
        guard code != KafkaCode.none, code != KafkaCode.noAnswer, producer.isOpen, producer.lastError == nil else {
            return
        }
        producer.lastError = (code, "")
        if isHeld(producer) { end(producer) }
    }

    private func timeOut(_ id: UInt64) {
        guard let ticket = tickets[id] else { return }
        ticket.timer = nil
        let reason = ticket.producer?.lastError ?? (KafkaCode.timedOut, "")
        // What is still in it would be sent once more than needed: the next attempt has another producer.
        if let producer = ticket.producer { retire(producer) }
        finish(id, outcome(of: reason, ticket.producer))
    }

    /// Ends a call; records without an outcome get this one.
    private func finish(_ id: UInt64, _ rest: Outcome?) {
        guard let ticket = tickets.removeValue(forKey: id) else { return }
        for timer in [ticket.timer, ticket.questionTimer] { timer.map { loop.cancel($0) } }
        let isWhole = ticket.isSettled
        ticket.finish(rest)
        guard let producer = ticket.producer else { return }
        producer.tickets.remove(id)
        // Given up here: its records are not to be sent while the next attempt sends them.
        if !isWhole { retire(producer) }
        guard producer.tickets.isEmpty, producer.isOpen else { return }
        guard !producer.isLeaving else { return close(producer) }
        let idle = producer.id
        producer.idleTimer = after(options.idleTime) { $0.retire(idle) }
    }

    /// Makes a producer that asks for the topic. Like a call to `publish` it gives up when no broker was found for `searchTime`.
    ///
    /// - Returns: what happened to it: `acknowledged` when a broker knows the topic and us.
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
            if code == KafkaCode.noAnswer { code = KafkaCode.noConnection }
            guard code != KafkaCode.none, KafkaAnswer.find(code).action == .retry else { break }
            for case .error(let code, let words, let isFatal) in producer.reports() {
                note(code, words, isFatal: isFatal, producer)
                if code == KafkaCode.allBrokersDown { downSince = downSince ?? time.bootTime }
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
    /// Its bytes, without headers.
    var size: Int { value.count + (key?.count ?? 0) }
}
