/// Waits until something is so, for 30 s unless told: a loaded machine may take seconds for what takes none else.
///
/// It waits without keeping a thread of the tasks' pool, of which there are as many as cores: what is waited for may need one.
///
/// - Returns: whether it came to be so.
public func eventually(
    within limit: Duration = .seconds(30), _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let clock = ContinuousClock()
    let deadline = clock.now + limit
    while clock.now < deadline {
        if try await condition() { return true }
        // Cut short only by a cancelled test, whose own end is near.
        try? await Task.sleep(for: .milliseconds(2))
    }
    return try await condition()
}
