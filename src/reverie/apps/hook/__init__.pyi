from reverie.apps.hook.before_call import answer_event as answer_event
from reverie.apps.hook.events import main as main
