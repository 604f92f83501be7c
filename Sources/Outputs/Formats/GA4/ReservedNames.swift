/// Names that the Measurement Protocol reserves: it drops events and parameters that have them.
///
/// Source: Google Analytics developer guides, "Measurement Protocol": "Reserved names".
enum ReservedNames {
    /// Prefixes that neither events nor parameters may have.
    static let prefixes = ["_", "firebase_", "ga_", "google_", "gtag_"]

    /// Reserved names of events.
    static let events: Set<String> = [
        "ad_activeview", "ad_click", "ad_exposure", "ad_impression", "ad_query", "ad_reward",
        "adunit_exposure",
        "app_background", "app_clear_data", "app_exception", "app_install", "app_remove", "app_store_refund",
        "app_store_subscription_cancel", "app_store_subscription_convert", "app_store_subscription_renew",
        "app_update",
        "app_upgrade", "dynamic_link_app_open", "dynamic_link_app_update", "dynamic_link_first_open", "error",
        "firebase_campaign", "firebase_in_app_message_action", "firebase_in_app_message_dismiss",
        "firebase_in_app_message_impression", "first_open", "first_visit", "in_app_purchase",
        "notification_dismiss",
        "notification_foreground", "notification_open", "notification_receive", "notification_send",
        "os_update",
        "session_start", "session_start_with_rollout", "user_engagement",
    ]

    /// Reserved names of parameters.
    static let parameters: Set<String> = ["firebase_conversion"]
}
