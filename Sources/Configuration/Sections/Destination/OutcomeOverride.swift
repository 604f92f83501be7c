/// What an answer means, where a destination's settings say so.
public enum OutcomeOverride: String, SettingChoice {
    /// The destination has the batch.
    case acknowledge
    /// The batch goes again, by the backoff.
    case retry
    /// The batch is halved until it fits.
    case split
    /// The batch is bisected to the rejected events.
    case bisect
    /// The destination is held: data kept, a person must look.
    case hold
}
