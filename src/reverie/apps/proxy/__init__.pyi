from reverie.apps.proxy.encodings import unpack as unpack
from reverie.apps.proxy.policies import FOLDER as FOLDER
from reverie.apps.proxy.policies import StreamObserver as StreamObserver
from reverie.apps.proxy.policies import sealing as sealing
from reverie.apps.proxy.server import run as run
from reverie.apps.proxy.server import upstreams_of as upstreams_of
