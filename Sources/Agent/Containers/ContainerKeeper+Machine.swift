internal import Configuration
internal import Containers
internal import EventLoops
internal import Intake
internal import Logs
internal import Queue

/// Gives each container's machine its inputs, and carries out the effects that it returns: fetching, saving,
/// timers, publishing.
extension ContainerKeeper {
    /// The time, by both clocks, and whether the time of day can be trusted.
    var moment: ContainerMoment {
        ContainerMoment(boot: time.bootTime, wall: time.wallTime, isTrusted: clock.isTrusted(at: time))
    }

    /// Gives the machine an input and carries out its effects.
    func feed(_ slot: ContainerSlot, _ input: ContainerMachine.Input) {
        // Fetches and timers of a replaced slot may still end.
        guard !slot.isClosed else { return }
        let effects = slot.state.machine.handle(input, at: moment, using: &random)
        var isChanged = false
        for effect in effects {
            switch effect {
            case .loadSaved: loadSaved(slot)
            case .fetch(let etag): fetch(slot, etag)
            // Saving is asynchronous: the answer is the input `kept`.
            case .keep(let copy, let etag, let confirmed): keep(slot, copy, etag, confirmed)
            case .confirm(let confirmed): confirm(slot, confirmed)
            case .open: release(slot)
            case .apply(let held):
                slot.rule(by: held.flatMap { slot.container(of: $0.copy) })
                isChanged = true
                if let container = slot.current {
                    tellFindings(container, slot.settings.id)
                }
            // A success of the network is reported after saving: see `CopySaving.hold`.
            case .tell(let note):
                if case .succeeded(.network, _, _) = note, slot.saving.hold(note) { continue }
                tell(slot, note)
            }
        }
        // Compiled documents that no source holds any more would only take memory.
        slot.forgetUnused()
        arm(slot)
        // Publishing what is in force also publishes the state.
        if isChanged {
            inForceChanged()
        } else {
            publish()
        }
    }

    /// Logs what a document that is in force now cannot do, or does badly.
    private func tellFindings(_ container: CompiledContainer, _ id: String) {
        for finding in container.findings {
            let fields: KeyValuePairs<String, any CustomStringConvertible> = [
                "container": id, "hint": finding,
            ]
            if finding.isMistake {
                log.error("container document has a mistake", fields)
            } else {
                log.warning("container document has a weakness", fields)
            }
        }
        guard !container.deniedFunctions.isEmpty else { return }
        log.warning(
            "container names functions that it may not call: they give null",
            [
                "container": id, "functions": container.deniedFunctions.joined(separator: ","),
                "hint": "name them in may_call and [functions], or remove them from the document",
            ])
    }

    // MARK: Fetching and saving

    /// Loads the saved copy and gives it to the machine.
    private func loadSaved(_ slot: ContainerSlot) {
        Task(executorPreference: loop) {
            let saved = await self.sources.saved(slot)
            await self.feed(slot, .saved(saved))
        }
    }

    /// Fetches a container's document and gives the result to the machine.
    private func fetch(_ slot: ContainerSlot, _ etag: String?) {
        Task(executorPreference: loop) {
            let fetched = await self.fetched(slot, etag)
            await self.feed(slot, .fetched(fetched))
        }
    }

    /// The result of a fetch.
    private func fetched(_ slot: ContainerSlot, _ etag: String?) async -> ContainerMachine.Fetched {
        await sources.fetched(slot, etag: etag, hasRoute: !offline.contains(slot.settings.id))
    }

    /// Fetches what is missing or stale at once: a person has switched the network on.
    func networkIsOn() {
        for slot in slots { feed(slot, .networkChanged) }
    }

    /// Takes the result of a look at the routes, and fetches again what could not be reached before.
    ///
    /// - Parameters:
    ///   - routes: whether a route leads to each container, by its id.
    ///   - hasChanged: whether the default route has changed.
    func networkNews(_ routes: [String: Bool], hasChanged: Bool) {
        let before = offline
        offline = Set(routes.filter { !$0.value }.map(\.key))
        // A new default route may reach a server that the old one did not.
        for slot in slots
        where hasChanged || before.contains(slot.settings.id) && !offline.contains(slot.settings.id) {
            feed(slot, .networkChanged)
        }
    }

    /// Saves a copy. Callers that wait for the refresh get its end only after that: see `CopySaving`.
    private func keep(_ slot: ContainerSlot, _ copy: ContainerCopy, _ etag: String?, _ confirmed: Timestamp) {
        guard let file = slot.saving.begin(copy) else { return }
        let saved = SavedContainer(
            version: copy.version, etag: etag, confirmed: confirmed, file: file)
        let id = slot.settings.id
        Task(executorPreference: loop) {
            do throws(QueueError) {
                try await self.sources.store.saveContainer(id, saved)
                await self.kept(slot, copy, nil)
            } catch {
                await self.kept(slot, copy, error)
            }
        }
    }

    /// Called when a copy was saved, or could not be saved.
    private func kept(_ slot: ContainerSlot, _ copy: ContainerCopy, _ error: QueueError?) {
        if let error {
            tell(slot, .failed(.saved, .ioError, message: "cannot save the document yet: \(error.message)"))
        }
        // A newer copy was fetched meanwhile; its save reports the end.
        guard slot.saving.end(copy, isSaved: error == nil) else { return publish() }
        feed(slot, .kept(error == nil))
        // The document is in force either way; if saving failed, the caller must know that a restart may lose
        // it.
        let failure = error.map {
            ContainerNote.failed(
                .network, .ioError, message: "it is in force, but not saved yet: \($0.message)")
        }
        for note in slot.saving.takeHeldEnds() { tell(slot, failure ?? note) }
        publish()
    }

    /// Saves the time at which the server confirmed the saved copy.
    private func confirm(_ slot: ContainerSlot, _ confirmed: Timestamp) {
        let id = slot.settings.id
        Task(executorPreference: loop) {
            do throws(QueueError) {
                try await self.sources.store.confirmContainer(id, at: confirmed)
            } catch {
                await self.noteUnsaved(slot, error)
            }
        }
    }

    /// Reports that this time could not be saved. The document itself is saved, so nothing else has to
    /// happen.
    private func noteUnsaved(_ slot: ContainerSlot, _ error: QueueError) {
        tell(
            slot,
            .failed(
                .saved, .ioError, message: "cannot save that the document was confirmed: \(error.message)"))
        publish()
    }

    // MARK: Timers and readers

    /// Sets the timer for the machine's next wake, if it has changed.
    func arm(_ slot: ContainerSlot) {
        let wanted = slot.state.machine.wake(at: moment)
        // Most inputs change nothing about the next wake: leave the timer.
        guard slot.timer?.at != wanted else { return }
        if let timer = slot.timer {
            loop.cancel(timer.id)
        }
        slot.timer = wanted.map { at in
            let id = loop.at(at) { [weak self] in
                self?.assumeIsolated { keeper in
                    slot.timer = nil
                    keeper.feed(slot, .timer)
                }
            }
            return (id, at)
        }
    }

    /// Publishes to the intake what is in force, and the containers that it must wait for.
    func showReader() {
        let awaited = slots.filter(\.state.isAwaited).map {
            AwaitedContainer(id: $0.settings.id, apps: Set($0.settings.apps))
        }
        inForce.publish(
            [rules.container].compactMap(\.self) + slots.compactMap(\.current),
            awaiting: holdsReading ? [.reload] + awaited : awaited)
        published()
    }

    /// Publishes everything that follows from a change of what is in force.
    func inForceChanged() {
        showReader()
        publish()
        changed()
        for slot in slots { tellAwaited(slot) }
        for slot in slots { askFunctions(slot, round: 1) }
    }

    /// Logs once that events wait for a container, and once that they no longer do.
    private func tellAwaited(_ slot: ContainerSlot) {
        guard slot.state.isHolding != slot.isHolding else { return }
        slot.isHolding = slot.state.isHolding
        guard slot.isHolding else {
            return log.warning(
                "events are read again: the container holds them back no longer",
                ["container": slot.settings.id])
        }
        log.error(
            slot.current == nil
                ? "events are not read: a required container has no document"
                : "events are not read: a required container does not redact, or a draft is in force",
            [
                "container": slot.settings.id,
                "apps": slot.settings.apps.isEmpty ? "all" : slot.settings.apps.joined(separator: ","),
                "hint": slot.state.machine.problem ?? slot.state.defaultProblem
                    ?? (slot.current == nil
                        ? "publish one, or give it a default_file" : slot.state.lack ?? "")
                    ,
            ])
    }

    /// Calls the functions that the values of a container depend on. An answer may lead to further calls, at
    /// most as many rounds as a chain of macros may be long.
    private func askFunctions(_ slot: ContainerSlot, round: Int) {
        guard let container = slot.current, round <= DocumentLimits.macroChain else { return }
        for call in slot.needed {
            ask(call) { answer in
                self.loop.post {
                    self.assumeIsolated { keeper in
                        // A late answer may belong to a document that is no longer in force.
                        guard !slot.isClosed, slot.take(answer, of: call, for: container) else { return }
                        keeper.publish()
                        keeper.changed()
                        keeper.askFunctions(slot, round: round + 1)
                    }
                }
            }
        }
    }
}
