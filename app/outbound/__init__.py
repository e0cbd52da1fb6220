"""Requests to addresses that people name: only to public ones, bounded, without redirects."""

from app.outbound.addresses import is_public as is_public
from app.outbound.client import guarded_client as guarded_client
from app.outbound.client import guarded_transport as guarded_transport
from app.outbound.errors import AnswerBroken as AnswerBroken
from app.outbound.errors import AnswerTooLarge as AnswerTooLarge
from app.outbound.errors import OutboundError as OutboundError
from app.outbound.errors import TimedOut as TimedOut
from app.outbound.errors import Unreachable as Unreachable
from app.outbound.errors import UrlRefused as UrlRefused
from app.outbound.mcp_client import McpClientFactory as McpClientFactory
from app.outbound.mcp_client import guarded_mcp_client_factory as guarded_mcp_client_factory
from app.outbound.reading import read_bounded as read_bounded
from app.outbound.resolving import Resolve as Resolve
from app.outbound.urls import Origin as Origin
from app.outbound.urls import check_url as check_url
