"""One memory for each user of a server, and one that all of them share."""

import reverie
from reverie import testing

with testing.home():
    shop = reverie.Memory("shop")
    ada = reverie.Memory("shop", user="ada@example.org")
    bob = reverie.Memory("shop", user="bob@example.org")

    shop.add("Parcels go out on Mondays")
    ada.add("Ada's parcels go to the side entrance")

    print("ada:", [str(found) for found in ada.search("where do parcels go?")])
    print("bob:", [str(found) for found in bob.search("where do parcels go?")])
