internal import Configuration
internal import Containers
internal import Control
internal import Delivery
internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Queue

/// What containers change in the running agent: settings (tm10), and the values that apps read (tm19).
extension AgentService {
    /// Makes the keeper of the containers; opens none yet.
    nonisolated func makeKeeper(
        _ queue: QueueStore, _ driver: DeliveryDriver, _ functions: FunctionDesk, _ rules: IntakeRules
    ) -> ContainerKeeper {
        ContainerKeeper(
            store: queue, inForce: containers, userAgent: "spoolship/\(program.version)",
            facts: host.agentFacts(version: program.version), on: loop, time: time, log: log,
            isNetworkOn: { driver.snapshot.isNetworkOn },
            published: { [readerLoop] in readerLoop.post { rules.documentsChanged() } },
            changed: { Task(executorPreference: self.loop) { await self.containersChanged() } }
        ) { call, answer in functions.ask(call, answer: answer) }
    }

    /// Applies the values of the containers to the settings, and publishes them to apps. Changes that arrive
    /// while a round waits for its turn are part of that round.
    func containersChanged() async {
        guard !isContainerRoundWanted else { return }
        isContainerRoundWanted = true
        await configurationTurn.takeTurn(configurationTurn.drawTicket())
        defer { configurationTurn.passTurn() }
        isContainerRoundWanted = false
        guard let parts else { return }
        await applyContainers(parts)
    }

    /// Puts the values of the containers on top of the configured settings. Called only while the caller has
    /// the configuration's turn: a reload at the same time would apply older values.
    func applyContainers(_ parts: Parts) async {
        let states = parts.containers.states
        var overlay = SettingsOverlay(configured, states)
        if overlay.settings != settings {
            do throws(ControlRefusal) {
                try await apply(overlay.settings, parts)
            } catch {
                await applySingly(&overlay, parts)
            }
        }
        containerNews.report(overlay, log)
        await parts.containers.setRefused(overlay.refused)
        containerNews.publish(states, log)
    }

    /// Applies wishes one by one, because they cannot be applied together: those that are possible take
    /// effect.
    private func applySingly(_ overlay: inout SettingsOverlay, _ parts: Parts) async {
        var reached = configured
        for wish in overlay.wishes {
            do {
                let next = try reached.setting(wish.path, to: wish.value, origin: .container(wish.container))
                try await apply(next, parts)
                reached = next
            } catch let error as ControlRefusal {
                overlay.refuse(wish, error.message)
            } catch {
                overlay.refuse(wish, "\(wish.path) conflicts with the other settings")
            }
        }
        guard settings != reached else { return }
        do throws(ControlRefusal) {
            try await apply(reached, parts)
        } catch {
            log.error("settings of containers not applied", ["reason": error.message])
        }
    }
}

extension Settings {
    /// Settings that containers have set, for `status`.
    var overrides: [StatusReport.Override] {
        // Most often there is no such setting, and listing all settings costs as much as 200 events.
        let isSetByContainer = origins.values.contains { if case .container = $0 { true } else { false } }
        guard isSetByContainer else { return [] }
        return effective.compactMap { setting in
            guard case .container = origin(of: setting.path), let value = setting.value else { return nil }
            return (setting.path, value.toml, origin(of: setting.path).description)
        }
    }

    /// The keys that tags hash with now, by container; throws if a key cannot be used, because nothing could
    /// be hashed.
    func hashKeys() throws(AgentError) -> [String: HashKey] {
        var keys: [String: HashKey] = [:]
        for container in containers {
            guard let path = container.hashKeyPath(credentials: environment("CREDENTIALS_DIRECTORY")) else {
                continue
            }
            keys[container.id] = try relaying(try HashKey(reading: path)) { (error: ContainerError) in
                AgentError(
                    .configuration, "container.\(container.id): the key for hash tags: \(error.message)")
            }
        }
        return keys
    }
}
