/// What some work gives; a failure of it becomes one of the caller's.
///
/// `try relaying(try loader.load(zone)) { (error: TimeZoneError) in AgentError(.configuration, error.message) }`
public func relaying<Value, Cause: Error, Failure: Error>(
    _ work: @autoclosure () throws(Cause) -> Value, _ failure: (Cause) -> Failure
) throws(Failure) -> Value {
    do throws(Cause) { return try work() } catch { throw failure(error) }
}

/// The same for work that is waited for.
public func relaying<Value, Cause: Error, Failure: Error>(
    awaiting work: @autoclosure () async throws(Cause) -> Value, _ failure: (Cause) -> Failure
) async throws(Failure) -> Value {
    do throws(Cause) { return try await work() } catch { throw failure(error) }
}
