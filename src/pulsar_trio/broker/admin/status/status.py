"""GET /status: the page, the files it needs, and its numbers, which it asks for every two seconds.

The page comes from the broker alone, so it works without a network. It runs no script and loads no file of
another place, and makes text of names: a topic's name cannot become a part of the page.
"""

from functools import lru_cache
from importlib.resources import files

from ..messages import Answer, Request, json_answer
from ..routes import AdministeredBroker, Handler, Route

MOST_TOPICS = 100
"""Topics in an answer: those with the largest backlogs come first."""

SECURITY = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
]
"""A browser may do nothing with the page but run its own script."""

FILES = {
    "/status": ("status.html", "text/html; charset=utf-8"),
    "/status/status.js": ("status.js", "text/javascript; charset=utf-8"),
    "/status/status.css": ("status.css", "text/css; charset=utf-8"),
}
"""Path -> file beside this module, and its media type."""


@lru_cache
def _content(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


def _file(name: str, content_type: str) -> Handler:
    def handler(broker: AdministeredBroker, request: Request) -> Answer:
        return Answer(200, _content(name), content_type, [*SECURITY, ("Cache-Control", "no-cache")])

    return handler


def read_numbers(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer with the broker's numbers, and those of the topics whose names contain `?filter=`."""
    machine = broker.machine
    wanted = request.query.get("filter", "").lower()
    topics = machine.topic_administration.overviews()
    matching = [each for each in topics if wanted in each.name.lower()]
    matching.sort(key=lambda each: (-each.backlog, -each.messages_in, each.name))
    stored = machine.services.stored_bytes
    answer = json_answer(
        {
            "cluster": machine.config.cluster,
            "version": machine.config.server_version,
            "serviceUrl": machine.config.service_url,
            "time": machine.wall_time,
            "connections": len(machine.links),
            "memory": {"used": stored.used, "limit": stored.limit},
            "topicsCount": len(topics),
            "subscriptions": sum(each.subscriptions for each in topics),
            "producers": sum(each.producers for each in topics),
            "consumers": sum(each.consumers for each in topics),
            "backlog": sum(each.backlog for each in topics),
            "storage": sum(each.storage for each in topics),
            "messagesIn": sum(each.messages_in for each in topics),
            "bytesIn": sum(each.bytes_in for each in topics),
            "messagesOut": sum(each.messages_out for each in topics),
            "bytesOut": sum(each.bytes_out for each in topics),
            "matching": len(matching),
            "topics": [
                {
                    "name": each.name,
                    "subscriptions": each.subscriptions,
                    "producers": each.producers,
                    "consumers": each.consumers,
                    "backlog": each.backlog,
                    "storage": each.storage,
                    "messagesIn": each.messages_in,
                    "messagesOut": each.messages_out,
                }
                for each in matching[:MOST_TOPICS]
            ],
        }
    )
    answer.headers.append(("Cache-Control", "no-store"))
    return answer


ROUTES: list[Route] = [
    *(("GET", path, _file(*content)) for path, content in FILES.items()),
    ("GET", "/status/numbers", read_numbers),
]
