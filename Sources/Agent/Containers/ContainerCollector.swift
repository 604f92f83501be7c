internal import Configuration
internal import Containers
internal import EventLoops
internal import Metrics

/// The state of the containers, and what their functions do.
struct ContainerCollector: MetricCollector {
    let keeper: ContainerKeeper
    let functions: FunctionDesk
    let time: any TimeSource

    func collect(into exposition: inout Exposition) {
        let now = time.wallTime
        for state in keeper.states {
            exposition.set(\.containerVersion, [state.id], to: state.version ?? 0)
            exposition.set(\.containerHeldBackVersion, [state.id], to: state.machine.heldBack ?? 0)
            for source in ContainerSource.allCases {
                exposition.set(\.containerSource, [state.id, source.rawValue], to: source == state.source)
            }
            exposition.set(\.containerAwaited, [state.id], to: state.isHolding)
            exposition.set(\.containerFresh, [state.id], to: state.isFresh(at: now))
            exposition.set(
                \.containerConfirmed, [state.id], to: state.confirmed.map { Double($0.milliseconds) / 1000 } ?? 0)
            if state.settings.url != nil {
                exposition.set(
                    \.containerRefreshSuccessful, [state.id], to: state.lastFetch.map { $0 == .success } ?? true)
            }
            exposition.set(\.containerSettingsRefused, [state.id], to: state.refused.count)
            for (type, result, count) in state.refreshes {
                exposition.set(\.containerRefreshes, [state.id, type.rawValue, result.rawValue], to: count)
            }
        }
        let figures = functions.runner.figures
        for (name, results) in figures.calls.sorted(by: { $0.key < $1.key }) {
            for (result, count) in results.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                exposition.set(\.functionCalls, [name, result.rawValue], to: count)
            }
        }
        exposition.set(\.functionsRunning, by: figures.running)
    }
}
