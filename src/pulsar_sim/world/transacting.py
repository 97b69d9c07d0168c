"""The account of the application with transactions in a world: how it begins, and its checks at rest."""

from typing import TYPE_CHECKING

from ..engine.transactions_plan import TransactionsPlan
from ..model.transactions.letter_account import LetterAccount
from ..model.transactions.subscription_account import SubscriptionAccount
from ..model.transactions.transaction_account import TransactionAccount

if TYPE_CHECKING:
    from .world import World


def account_of(plan: TransactionsPlan | None) -> TransactionAccount | None:
    """Return the account of the application with transactions, if there is one."""
    if plan is None:
        return None
    by_key = plan.batching is not None and plan.batching.by_key
    account = TransactionAccount(plan.names, by_key, plan.partitioned)
    for subscription, whole, kind in plan.subscriptions:
        letter_topic = plan.letter_topics.get(subscription)
        letters = None if letter_topic is None else LetterAccount(letter_topic, plan.dead_letters)
        looped = subscription == plan.looped_subscription
        for topic in plan.partitioned.get(whole, [whole]):
            name = subscription + topic.removeprefix(whole)
            account.subscriptions[name] = SubscriptionAccount(
                name, topic, kind, subscription, letters, looped
            )
    return account


def check_transactions(world: "World") -> None:
    """Check at rest what the store holds of transactions, and of dead letters beside them."""
    account, plan = world.transactions, world.profile.transactions
    if account is None or plan is None:
        return
    account.check_rest(world.durable_transactions())
    for topic in plan.letter_topics.values():
        account.check_letters(topic, [data for _, data in world.cluster.durable(topic)])
