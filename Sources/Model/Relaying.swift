/// The result of some work, with its errors converted to the caller's error type. Typed throws need
/// such a conversion at each border between modules.
///
/// `try relaying(try loader.load(zone)) { (error: TimeZoneError) in
///     AgentError(.configuration, error.message)
/// }`
public func relaying<Value, Cause: Error, Failure: Error>(
    _ work: @autoclosure () throws(Cause) -> Value, _ failure: (Cause) -> Failure
) throws(Failure) -> Value {
    do throws(Cause) { return try work() } catch { throw failure(error) }
}

/// The same for asynchronous work.
public func relaying<Value, Cause: Error, Failure: Error>(
    awaiting work: @autoclosure () async throws(Cause) -> Value, _ failure: (Cause) -> Failure
) async throws(Failure) -> Value {
    do throws(Cause) { return try await work() } catch { throw failure(error) }
}
