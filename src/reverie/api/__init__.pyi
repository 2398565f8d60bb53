from reverie.api.async_fitter import AsyncFitter as AsyncFitter
from reverie.api.async_memory import AsyncMemory as AsyncMemory
from reverie.api.blocking_faces import BlockingAgent as BlockingAgent
from reverie.api.blocking_faces import BlockingSession as BlockingSession
from reverie.api.learning import Learning as Learning
from reverie.api.learning import beside as beside
from reverie.api.wrapping import Wrapping as Wrapping
from reverie.api.wrapping import WrapRules as WrapRules
