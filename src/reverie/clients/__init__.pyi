from reverie.clients.files import ClientSettings as ClientSettings
from reverie.clients.install import CLIENTS as CLIENTS
from reverie.clients.plugin import plugin_files as plugin_files
from reverie.clients.proxy_address import ProxyAddress as ProxyAddress
from reverie.clients.proxy_address import known_token as known_token
from reverie.clients.proxy_address import proxy_status as proxy_status
from reverie.clients.service import start_missing as start_missing
from reverie.clients.service import unit as unit
