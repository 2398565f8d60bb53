from reverie.apps.proxy.answers import Passing as Passing
from reverie.apps.proxy.running import ProxyAddress as ProxyAddress
from reverie.apps.proxy.running import run as run
from reverie.apps.proxy.running import upstreams_of as upstreams_of
from reverie.apps.proxy.sealing import FOLDER as FOLDER
